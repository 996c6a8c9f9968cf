# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A call with some sizes as symbols: traced once, as a graph for a range of them."""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree
from torch._subclasses.fake_tensor import FakeTensor
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn.utils.rnn import PackedSequence
from torch.utils._sympy.printers import PythonPrinter

from weft import frontend
from weft.capture.exported_facts import layouts_of
from weft.capture.size_guards import Guard, SizeGuard, SizesAmong, within_guards
from weft.capture.symbolic_forms import SymbolicForms
from weft.capture.traced_root import TracedRoot
from weft.capture.united_sizes import appended_sizes, is_number, traced_size, united_sizes
from weft.frontend.exported import Draft, draft
from weft.frontend.graph import Graph
from weft.frontend.lowered import Refused
from weft.frontend.sizes import (  # noqa: F401  (they fill the table)
    fallbacks,
    recurrences,
    reductions,
    reshapes,
    rules,
)
from weft.frontend.sizes.concrete import at_sizes, symbols_of
from weft.frontend.sizes.extents import Domain, Extent, Samples, sample_sizes
from weft.frontend.sizes.implied import implied_sizes
from weft.frontend.sizes.padding import NotForRange, Padding
from weft.frontend.sizes.quotients import Quotient, quotients_among, telling_samples

# The least and the largest size.
Range = tuple[int, int]
Wanted = dict[int, dict[int, Range]]  # by leaf and dim
# A range that nobody has bounded is cut off here: padded tensors are as long as its end.
_MOST = 1 << 20
# Sizes that a guard leaves are of one program if no more than so many lie between two of them, as
# between multiples of a window's size.
_LONGEST_GAP = 64
# Samples may break relations of several sizes, as that a prompt is shorter than its cache; or they
# are of sizes that relations leave; or each symbol has those that are left beside the others' own.
# A mask may also be longer than a cache by what a call appends, of which torch asks nothing.
_WAYS = ("any sizes", "within", "appended", "narrowed")
# Why there is none where each size turned out to be a number, as at the end of a window.
ONE_SIZE = "the program holds for these sizes alone"


@dataclass(frozen=True)
class SizeSymbols:
    """Which sizes of a call are symbols, and for which of them the program stands.

    ranges: of each symbol. dims: of each tensor among the leaves whose sizes are symbols, by leaf:
    a number or an Extent for each dim. guards: relations between sizes. quotients: symbols of the
    program that follow from these. lengths: of leaves that hold lengths of sequences, which size
    the longest is.
    """

    ranges: tuple[Range, ...]
    dims: dict[int, tuple[int | Extent, ...]]
    guards: tuple[SizeGuard, ...] = ()
    quotients: tuple[Quotient, ...] = ()
    lengths: dict[int, Extent] = field(default_factory=dict)


class RangeRoot(TracedRoot):
    """Arguments in two containers: torch.export cannot tell the sizes of `**kwargs`."""

    stands_for_numbers = True

    def forward(self, positional: tuple, named: dict[str, Any]) -> Any:
        if self.observed.loops is not None:
            leaves = pytree.tree_leaves((positional, named))
            sizes = [size for x in leaves if isinstance(x, torch.Tensor) for size in x.shape]
            self.observed.loops.symbols = [x for x in sizes if isinstance(x, torch.SymInt)]
        positional, named = _with_packed((positional, named), self._call)
        with SymbolicForms():
            return super().forward(*positional, **named)


def exported_with_symbols(
    root: RangeRoot, args: tuple, kwargs: dict[str, Any], wanted: Wanted
) -> torch.export.ExportedProgram:
    args, kwargs = _with_lists((args, kwargs))
    numbers = iter(range(1 << 30))

    def spec(value: Any) -> Any:
        kind = type(value)
        if kind in (tuple, list):
            return kind(spec(each) for each in value)
        if kind is dict:
            return {key: spec(each) for key, each in value.items()}
        node = pytree.SUPPORTED_NODES.get(pytree._get_node_type(value))
        if node is not None:
            specs = [spec(each) for each in node.flatten_fn(value)[0]]
            return kind(*specs) if pytree.is_namedtuple(value) else specs
        dims = wanted.get(next(numbers))
        return None if dims is None else {dim: torch.export.Dim.AUTO for dim in dims}

    shapes = {"positional": spec(args), "named": spec(kwargs)}
    return torch.export.export(root, (args, kwargs), dynamic_shapes=shapes, strict=False)


def _with_lists(value: Any) -> Any:
    """With a list in place of each packed sequence, which cannot be made of what torch.export has
    in place of its tensors."""
    if isinstance(value, PackedSequence):
        return list(value)
    if type(value) in (tuple, list):
        return type(value)(map(_with_lists, value))
    if type(value) is dict:
        return {key: _with_lists(each) for key, each in value.items()}
    return value


def _with_packed(value: Any, given: Any) -> Any:
    """What `_with_lists` has made of `given`, with packed sequences again."""
    if isinstance(given, PackedSequence):
        return PackedSequence(*value)
    if type(given) in (tuple, list):
        return type(given)(map(_with_packed, value, given))
    if type(given) is dict:
        return {key: _with_packed(value[key], each) for key, each in given.items()}
    return value


def lower_for_range(
    program: torch.export.ExportedProgram,
    wanted: Wanted,
    given: Sequence[Any],
    namer: Callable[[frontend.InputSource], str | None],
    held: Set[int] = frozenset(),
    lengths: Mapping[int, torch.SymInt] | None = None,
    training: bool = False,
    rng: str = "torch",
    reach: frontend.AutogradReach | None = None,
) -> tuple[frontend.Lowered, SizeSymbols, torch.export.ExportedProgram]:
    """The graph for a range of sizes, which symbols it has, and the program at the largest.

    given: the leaves of the call that was traced. Its argument behind all others is a tensor of the
    symbols' sizes. held: the numbers of leaves that objects hold, of which equal sizes are one:
    those of a cache's layers, which grow together, and of which torch asks nothing. lengths: of
    leaves that hold lengths of sequences, which size the longest is. training, rng, reach: as of
    `frontend.lower`.
    Raises: frontend.Unsupported, which says why there is none.
    """

    def drafted(concrete: torch.export.ExportedProgram) -> Draft:
        return draft(concrete, namer, Graph(training, keeps_trivial=True, rng=rng), reach)

    every = symbols_of(program)

    @functools.cache
    def at(sizes: tuple[int, ...]) -> torch.export.ExportedProgram:
        return at_sizes(program, dict(zip(every, sizes)))

    everything = set(range(len(given)))
    reason: frontend.Unsupported | None = None
    # Sizes may have to be equal of which torch has asked nothing, as those of a mask that is
    # expanded and of the keys that it hides.
    leasts = [1, 2]
    if all(low > 1 for dims in wanted.values() for low, _ in dims.values()):
        leasts.remove(1)
    for way, united, least in itertools.product(_WAYS, (held, everything), leasts):
        try:
            settings = held, united, least, way, lengths or {}
            return _lowered(program, wanted, given, at, drafted, *settings)
        except frontend.Unsupported as why:
            # What an op refuses at sizes that another attempt makes one says less.
            if reason is None or (isinstance(reason, Refused) and way != _WAYS[-1]):
                reason = why
    assert reason is not None
    raise reason


def _lowered(
    program: torch.export.ExportedProgram,
    wanted: Wanted,
    given: Sequence[Any],
    at_every: Callable[[tuple[int, ...]], torch.export.ExportedProgram],
    drafted: Callable[[torch.export.ExportedProgram], Draft],
    held: Set[int],
    united: Set[int],
    least: int,
    way: str,
    lengths: Mapping[int, torch.SymInt],
) -> tuple[frontend.Lowered, SizeSymbols, torch.export.ExportedProgram]:
    """at_every: the program at sizes of all symbols. united: the numbers of leaves of which equal
    sizes are one. least: that a size can be. way: one of `_WAYS`.
    """
    leaves = _user_inputs(program)
    every = symbols_of(program)
    same = united_sizes(every, leaves, given, united)
    if way == "appended":
        same = appended_sizes(every, same, leaves, given, held)
    symbols = [each for each in every if each not in same]
    if not symbols or is_number(symbols, leaves, given, held, wanted):
        raise NotForRange(ONE_SIZE)
    guards = _guards(program, symbols, same)
    ranges = [_range(program, symbol, leaves, wanted, same, least) for symbol in symbols]
    hints = [traced_size(symbol, leaves, given) for symbol in symbols]
    domains = [_narrowed(j, each, hints, guards) for j, each in enumerate(ranges)]
    if way == "narrowed":
        wider = domains
        domains = [_narrowed(j, each, hints, guards, True) for j, each in enumerate(ranges)]
        if domains == wider:
            raise NotForRange("no relation between sizes leaves out any")

    def at(sizes: Sequence[int]) -> torch.export.ExportedProgram:
        known = dict(zip(symbols, sizes))
        return at_every(tuple(int(same.get(each, each).subs(known)) for each in every))

    while True:
        if all(len(domain) == 1 for domain in domains):
            raise NotForRange(ONE_SIZE)
        quotients = quotients_among(_sizes_of(program, same), symbols, domains)
        bound = functools.partial(within_guards, domains, hints, guards)
        samples = _samples(domains, quotients, bound if way == "within" else None)
        concrete = _at_samples(at, samples, guards)
        drafts = [drafted(each) for each in concrete]
        within = _within_tables(domains, hints, samples, [each.graph.excess for each in drafts])
        if within == domains:
            break
        domains = within
    layouts = [layouts_of(each) for each in concrete]
    dims = {
        number: tuple(_extent(size, symbols, same) for size in shape)
        for number, shape in enumerate(leaves)
        if shape is not None and any(isinstance(size, torch.SymInt) for size in shape)
    }
    padding = Padding(drafts, samples, domains, quotients, layouts, dims.keys())
    lowered = padding.run(len(leaves)).finish()
    own_ranges = tuple((domain[0], domain[-1]) for domain in domains)
    gaps = (SizesAmong(j, each) for j, each in enumerate(domains) if not isinstance(each, range))
    longest = {leaf: _extent(size, symbols, same) for leaf, size in lengths.items()}
    if not all(isinstance(each, Extent) for each in longest.values()):
        raise NotForRange("sequences are as long as a size that is a number")
    found = SizeSymbols(own_ranges, dims, (*guards, *gaps), quotients, longest)
    return lowered, found, concrete[0]


def _at_samples(
    at: Callable[[Sequence[int]], torch.export.ExportedProgram],
    samples: Samples,
    guards: Sequence[Guard],
) -> list[torch.export.ExportedProgram]:
    """What the ops that were traced do at each. Where a relation between sizes does not hold the
    program may do others, and no call of such sizes is this one's; how it depends on sizes can be
    read there all the same, unless an op refuses them. Raises: NotForRange."""
    broken = [guard.text for guard in guards if not all(map(guard.holds, samples))]
    try:
        return [at(sizes) for sizes in samples]
    except frontend.Unsupported:
        raise
    except Exception as error:
        if not broken:
            raise
        raise NotForRange(f"sizes depend on one another: {broken[0]}") from error


def _sizes_of(program: torch.export.ExportedProgram, same: dict[Any, Any]) -> set[Any]:
    """The sizes of all tensors that are computed, as sympy expressions, and the numbers that are
    sizes."""
    found = set()
    for node in program.graph.nodes:
        for size in implied_sizes(node):
            if getattr(size, "free_symbols", None):
                found.add(size.subs(same))
        for value in pytree.tree_leaves(node.meta.get("val")):
            for size in value.shape if isinstance(value, torch.Tensor) else (value,):
                if isinstance(size, torch.SymInt):
                    found.add(size.node.expr.subs(same))
    return found


def _samples(
    domains: Sequence[Domain],
    quotients: Sequence[Quotient],
    bound: Callable[[Samples], Samples] | None = None,
) -> Samples:
    """Values for all symbols at which expressions are compared; more of them where there are
    quotients. bound: gives sizes that relations leave."""
    finer = {j for each in quotients for j, c in enumerate(each.dividend.coefficients) if c}
    samples = sample_sizes(domains, sorted(finer))
    return telling_samples(bound(samples) if bound else samples, domains, quotients)


def _within_tables(
    domains: list[Domain], hints: Sequence[int], samples: Samples, excess: Sequence[int]
) -> list[Domain]:
    """The domains without sizes at which an index that grows with them lies behind the end, as that
    of a table of positions. excess: how far, in each sample."""
    made = list(domains)
    for j, domain in enumerate(domains):
        bases = [each[: len(domains)] for each in samples]
        next_size, high = domain[-2:][0], domain[-1]
        less = (*bases[0][:j], next_size, *bases[0][j + 1 :])
        by = high - next_size
        if excess[0] and less in bases and excess[bases.index(less)] == excess[0] - by:
            within = domain[: bisect.bisect_right(domain, high - excess[0])]
            if by and within and within[-1] >= hints[j]:
                made[j] = within
                break
    return made


def _user_inputs(program: torch.export.ExportedProgram) -> list[Sequence[Any] | None]:
    """The shape of each leaf, None for a leaf that is no tensor."""
    placeholders = program.graph.find_nodes(op="placeholder")
    found: list[Sequence[Any] | None] = []
    for node, spec in zip(placeholders, program.graph_signature.input_specs):
        if spec.kind == InputKind.USER_INPUT:
            is_constant = isinstance(spec.arg, ConstantArgument)
            value = None if is_constant else node.meta["val"]
            found.append(value.shape if isinstance(value, torch.Tensor) else None)
    return found


def numbers_among(program: torch.export.ExportedProgram, wanted: Wanted) -> int:
    """How many of the sizes that were to be symbols are numbers."""
    leaves = _user_inputs(program)
    return sum(
        not (isinstance(shape[dim], torch.SymInt) and shape[dim].node.expr.free_symbols)
        for leaf, dims in wanted.items()
        for dim in dims
        if (shape := leaves[leaf]) is not None
    )


def _guards(
    program: torch.export.ExportedProgram, symbols: list[Any], same: dict[Any, Any]
) -> list[Guard]:
    """What torch has relied on while it traced, of the symbols."""
    env = next(
        value.fake_mode.shape_env
        for node in program.graph.nodes
        if isinstance(value := node.meta.get("val"), FakeTensor)
    )
    found = [env.replace(guard.expr) for guard in env.guards]
    for node in program.graph.nodes:
        condition = node.args[0] if str(node.target) == "aten._assert_scalar.default" else None
        if isinstance(condition, torch.fx.Node):
            condition = condition.meta.get("val")
        # That a number which data decide is a size is no relation.
        if isinstance(condition, torch.SymBool) and statically_known_true(condition):
            continue
        if isinstance(condition, (torch.SymBool, torch.SymInt)):
            found.append(env.replace(condition.node.expr))
    found = [each.subs(same) if same and hasattr(each, "subs") else each for each in found]
    names = {symbol: sympy.Symbol(f"n[{j}]", integer=True) for j, symbol in enumerate(symbols)}
    numbers = {symbol: j for j, symbol in enumerate(symbols)}
    guards: dict[str, Guard] = {}
    for each in found:
        free = getattr(each, "free_symbols", set())
        if free - set(symbols):
            raise NotForRange(f"the program relies on {each}")
        if free:
            text = PythonPrinter().doprint(each.xreplace(names))
            guards.setdefault(text, Guard(text, {numbers[symbol] for symbol in free}))
    return list(guards.values())


def _range(
    program: torch.export.ExportedProgram,
    symbol: Any,
    leaves: list,
    wanted: Wanted,
    same: dict[Any, Any],
    least: int,
) -> Range:
    """The range of a symbol, and of the symbols that equal it."""
    low, high = least, _MOST
    of_symbol: list[Range] = []
    for number, shape in enumerate(leaves):
        for dim, size in enumerate(shape or ()):
            each = wanted.get(number, {}).get(dim)
            if each is None or not isinstance(size, torch.SymInt):
                continue
            more = same.get(size.node.expr, size.node.expr) - symbol
            if more.is_Integer:
                of_symbol.append((each[0] - int(more), each[1] - int(more)))
    # torch treats 0 and 1 apart, and so do most programs.
    low = max([low, *(low for low, _ in of_symbol)] if of_symbol else [low, 2])
    high = min([high, *(high for _, high in of_symbol)])
    for each in (symbol, *same):
        more = same.get(each, each) - symbol
        told = program.range_constraints.get(each)
        if told is not None and more.is_Integer:
            low = max(low, int(told.lower) - int(more)) if told.lower > 2 else low
            high = min(high, int(told.upper) - int(more)) if told.upper < _MOST else high
    return low, high


def _narrowed(
    j: int, given: Range, hints: Sequence[int], guards: list[Guard], by_all: bool = False
) -> Domain:
    """The sizes around the one that was traced at which the guards of this symbol alone hold, as
    far as there are no long gaps between them. by_all: and those of others, which are as they were
    traced."""
    (least, most), hint = given, hints[j]
    own = [g for g in guards if g.symbols == {j} or (by_all and j in g.symbols)]
    if not least <= hint <= most:
        raise NotForRange(f"a size of {hint} is not from {least} to {most}")
    sizes = [*hints]

    def holds(size: int) -> bool:
        sizes[j] = size
        return all(guard.holds(sizes) for guard in own)

    if not own:
        return range(least, most + 1)
    found = [hint]
    for sizes_on_one_side in (range(hint - 1, least - 1, -1), range(hint + 1, most + 1)):
        last = hint
        for size in sizes_on_one_side:
            if holds(size):
                found.append(last := size)
            elif abs(size - last) > _LONGEST_GAP:
                break
    whole = range(min(found), max(found) + 1)
    return whole if len(found) == len(whole) else tuple(sorted(found))


def _extent(size: Any, symbols: list[Any], same: dict[Any, Any]) -> int | Extent:
    if not isinstance(size, torch.SymInt):
        return int(size)
    expr = size.node.expr.subs(same)
    coefficients = [expr.coeff(symbol) for symbol in symbols]
    constant = expr - sum(c * s for c, s in zip(coefficients, symbols))
    if not all(each.is_integer and each.is_number for each in (*coefficients, constant)):
        raise NotForRange(f"an argument's size is {expr}")
    return Extent(tuple(int(each) for each in coefficients), int(constant))
