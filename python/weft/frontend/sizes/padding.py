# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the graphs of a program at several sizes to one graph for a range of them.

It is the graph for the largest sizes, in which what reduces over padding, or looks behind the end,
hides the padding first; the actual sizes are an input. The graphs have to agree in everything but
sizes: what else depends on a size has no program for a range.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from typing import Any

import torch

from weft.frontend.builder import Builder, _identity
from weft.frontend.exported import Draft
from weft.frontend.graph import Body, Graph, Node, Value
from weft.frontend.lowered import InputSource, Unsupported
from weft.frontend.sizes import derivatives
from weft.frontend.sizes.extents import (
    Dim,
    Domain,
    Extent,
    Samples,
    factor_of,
    fit,
    is_static,
    joined,
    size_of,
    unified,
)
from weft.frontend.sizes.quotients import (
    Quotient,
    bounds_of,
    grows_to,
    single_quotients,
)
from weft.frontend.sizes.results import Layouts, output

Rule = Callable[["Padding", Node, list[Node]], None]
RULES: dict[str, Rule] = {}


def rule(*ops: str) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        RULES.update((f"weft.{op}", function) for op in ops)
        return function

    return enter


class NotForRange(Unsupported):
    """No program serves a range of sizes here; each size has one of its own."""


class Padding:
    """The graph in the making.

    dims: of each value of the first draft's graph, by identity. lows, highs: bounds of the symbols.
    differentiable: of a graph to be differentiated, the values that gradients may come to.
    quiet: see derivatives.py. zeroed: values of the new graph by identity, and the same with zeros
    where nothing counts.
    """

    def __init__(
        self,
        drafts: Sequence[Draft],
        samples: Samples,
        domains: Sequence[Domain],
        quotients: Sequence[Quotient],
        layouts: Sequence[Layouts],
        padded: Set[int] = frozenset(),
    ) -> None:
        """domains: of the arguments' symbols. layouts: of the leaves of the value returned, in each
        sample. padded: the numbers of the arguments that are."""
        self.padded = padded
        self.domains, self._quotients = domains, quotients
        self._within_padding: dict[Extent, bool] = {}
        self.samples = samples
        self.layouts = layouts
        self.highs = samples[0]
        lows, mosts = zip(*bounds_of(domains, quotients))
        self.lows, self.mosts = lows, mosts
        self.dims: dict[int, list[Dim]] = {}
        self.drafts = drafts
        self._values: dict[int, Value] = {}
        self._counts: dict[Extent, Value] = {}
        self.differentiable: set[int] = set()
        self.quiet = derivatives.quiet_values(drafts[0].graph)
        self.zeroed: dict[int, tuple[Value, Value]] = {}
        self._makers = {id(x): node for node in drafts[0].graph.nodes for x in node.results}
        self._graph = Graph(drafts[0].graph.training)
        self.builder = Builder(self._graph)

    def run(self, sizes_index: int) -> Draft:
        """sizes_index: of the argument that holds the sizes, int64 (symbols).

        Raises: NotForRange.
        """
        base, *others = self.drafts
        if any(len(each.graph.nodes) != len(base.graph.nodes) for each in others):
            self.refuse("the program does other things at other sizes")
        self._inputs(sizes_index)
        numbers: list[dict[int, int]] = [
            {id(entry.value): -1 - i for i, entry in enumerate(draft.graph.inputs)}
            for draft in self.drafts
        ]
        self._visit([draft.graph.nodes for draft in self.drafts], numbers)
        outputs = [output(self, each) for each in zip(*(draft.outputs for draft in self.drafts))]
        for each in base.graph.outputs:
            self._graph.add_output(self.of(each.value), each.order)
        reached = self._reached()
        self._graph.copied = [self.of(each) for each in base.graph.copied]
        self._prune({id(each) for values in reached.values() for each in values})
        sources = {id(self._values[key]): source for key, source in base.sources.items()
                   if key in self._values}  # fmt: skip
        sources[id(self._sizes)] = InputSource("user", index=sizes_index)
        return Draft(self._graph, sources, outputs, base.fallbacks, reached)

    def _reached(self) -> dict[int, list[Value]]:
        """See Draft."""
        found = []
        for draft in self.drafts:
            numbers = {id(entry.value): i for i, entry in enumerate(draft.graph.inputs)}
            found.append({n: [numbers[id(x)] for x in xs] for n, xs in draft.reached.items()})
        if any(each != found[0] for each in found):
            self.refuse("autograd leads to other tensors at other sizes")
        return {n: [self.of(x) for x in xs] for n, xs in self.drafts[0].reached.items()}

    def _prune(self, kept: Set[int]) -> None:
        """kept: inputs by identity, though nothing may read them."""
        inputs = self._graph.inputs
        self._graph.prune()
        live = {id(each) for each in (*self._graph.inputs, inputs[-1])}  # kernels read the sizes
        self._graph.inputs = [x for x in inputs if id(x) in live or id(x.value) in kept]

    def _visit(self, samples: Sequence[list[Node]], numbers: list[dict[int, int]]) -> None:
        """The nodes of the new graph for those of a graph in each sample. numbers: of the values
        that these have, by identity."""
        for node, *same in zip(*samples):
            self._graph.location = node.location
            self._agree(node, same, numbers)
            found = RULES.get(node.op)
            if found is None:
                self.refuse(f"{node.op} with symbolic sizes")
            if self._graph.training:
                derivatives.visit(self, found, node, [node, *same])
            else:
                found(self, node, [node, *same])
            self._check(node, same)

    def refuse(self, reason: str) -> None:
        raise NotForRange(reason, self._graph.location)

    # What rules use.

    def of(self, value: Value) -> Value:
        """The value of the new graph for one of the old."""
        return self._values[id(value)]

    def maker(self, value: Value) -> Node | None:
        """What computes a value of the first draft, None of an argument and within scans."""
        return self._makers.get(id(value))

    def dims_of(self, value: Value) -> list[Dim]:
        return self.dims[id(value)]

    def set(self, old: Value, new: Value, dims: Sequence[Dim]) -> None:
        new.bounds = new.bounds or old.bounds
        self._values[id(old)] = new
        self.dims[id(old)] = list(dims)

    def stand_for(self, old: Value, new: Value) -> None:
        """`new` is what `of` gives from now on, of the same dims."""
        self._values[id(old)] = new

    def emit(
        self,
        node: Node,
        operands: Sequence[Value],
        *dims: Sequence[Dim],
        body: Body | None = None,
        **attrs: Any,
    ) -> None:
        """The node with these operands. dims: of each result."""
        types = [(value.dtype, value.shape) for value in node.results]
        results = self._graph.append(node.op, operands, {**node.attrs, **attrs}, types)
        self._graph.nodes[-1].body = body or node.body
        self._graph.nodes[-1].level = node.level
        for old, new, each in zip(node.results, results, dims, strict=True):
            self.set(old, new, each)

    @property
    def all_sizes(self) -> Value:
        """int64 (symbols)."""
        return self._sizes

    def within(
        self, bodies: Sequence[Body], dims: Sequence[Sequence[Dim]], states: int
    ) -> tuple[Body, list[list[Dim]]]:
        """What is in a scan, in each sample, to that of the new one, whose last argument holds the
        sizes. dims: of its arguments, of which `states` are states; returns those of its
        outputs."""
        if len({len(each.nodes) for each in bodies}) != 1:
            self.refuse("the program does other things at other sizes")
        outside = self._graph, self.builder, self._counts, self._sizes
        self._graph = Graph(self._graph.training, location=self._graph.location)
        self.builder, self._counts = Builder(self._graph), {}
        self._sizes = Value(torch.int64, (len(self.highs),))
        arguments = []
        for old, each in zip(bodies[0].arguments, dims, strict=True):
            arguments.append(Value(old.dtype, old.shape, old.bounds))
            self.set(old, arguments[-1], each)
            if old.dtype.is_floating_point:
                self.differentiable.add(id(old))
        self.quiet |= derivatives.quiet_values_of_step(bodies[0], states)
        numbers = [{id(x): i for i, x in enumerate(each.arguments)} for each in bodies]
        try:
            self._visit([each.nodes for each in bodies], numbers)
            given = {tuple(of[id(x)] for x in each.outputs) for each, of in zip(bodies, numbers)}
            if len(given) != 1:
                self.refuse("the program does other things at other sizes")
            outputs = [self.of(x) for x in bodies[0].outputs]
            body = Body([*arguments, self._sizes], self._graph.nodes, outputs)
        finally:
            self._graph, self.builder, self._counts, self._sizes = outside
        return body, [self.dims_of(x) for x in bodies[0].outputs]

    def fitted(self, sizes: Sequence[int], uniform: bool = False) -> Dim:
        """A dim that has these sizes in the samples."""
        made = factor_of(sizes, self.samples, uniform, len(self.domains))
        if made.extent is not None and not self._is_within(made.extent):
            self.refuse("a size that is not the largest where those of the arguments are")
        if uniform and made.extent is None and not made.is_static:
            return tuple(replace(f, uniform=True) for f in self.product(sizes)) or (made,)
        return (made,)

    def product(self, sizes: Sequence[int]) -> Dim:
        """A dim of so many elements as another has, which a reshape has made of several; () if
        there is none."""
        for dim in itertools.chain(*self.dims.values()):
            factors = joined(dim)
            if len(factors) > 1 and all(f.extent or f.is_static for f in factors):
                if tuple(size_of(dim, s) for s in range(len(sizes))) == tuple(sizes):
                    return tuple(replace(factor, uniform=False) for factor in factors)
        return ()

    def fit(self, values: Sequence[int]) -> Extent | None:
        """The linear function of the symbols that has these values in the samples."""
        return fit(values, self.samples, len(self.domains))

    def _is_within(self, extent: Extent) -> bool:
        if extent not in self._within_padding:
            self._within_padding[extent] = grows_to(extent, self.domains, self._quotients)
        return self._within_padding[extent]

    def sizes(self, nodes: Sequence[Node], dim: int) -> tuple[int, ...]:
        """The size of a dim of the nodes' result in each sample."""
        return tuple(node.results[0].shape[dim] for node in nodes)

    def prefix(self, dim: Dim, what: str) -> Extent:
        """How many elements count, which are the first of a padded dim."""
        single = joined(dim)
        if len(single) != 1 or single[0].extent is None:
            self.refuse(f"{what} along a dim of which elements count that are not the first")
        return single[0].extent

    def fixed(self, dims: Sequence[Dim], what: str) -> None:
        if not all(map(is_static, dims)):
            self.refuse(f"{what} along a symbolic size")

    def combined(self, values: Sequence[Value]) -> list[Dim]:
        """The dims of what combines values of one shape element by element."""
        made = self.dims_of(values[0])
        for other in values[1:]:
            made = [self.unify(*pair) for pair in zip(made, self.dims_of(other), strict=True)]
        return made

    def unify(self, one: Dim, other: Dim) -> Dim:
        both = unified(one, other) or unified(self._refitted(one), self._refitted(other))
        if both is None:
            self.refuse("tensors are combined that are padded in two ways")
        return both  # type: ignore[return-value]

    def _refitted(self, dim: Dim) -> Dim:
        """With one extent for each function: four times a quarter of a size is that size where all
        sizes are multiples of 4."""
        return tuple(
            replace(factor, extent=self.fit(factor.sizes)) if factor.extent else factor
            for factor in joined(dim)
        )

    def differ(self, one: Dim, other: Dim) -> bool:
        """Whether another number of elements may count, or other ones."""
        return [f.extent for f in joined(one)] != [f.extent for f in joined(other)]

    def count(self, extent: Extent) -> Value:
        """int64 ()."""
        if extent not in self._counts:
            b = self.builder
            total = b.constant(extent.constant, torch.int64)
            for j, coefficient in enumerate(extent.coefficients):
                if coefficient:
                    size = b.reshape(b.slice(self._sizes, 0, j, j + 1), [])
                    total = b.binary("add", total, b.scalar("mul", size, coefficient))
            self._counts[extent] = total
        return self._counts[extent]

    def counting(self, dims: Sequence[Dim], which: Sequence[int]) -> Value | None:
        """Whether an element counts along dims `which`, bool of the whole shape; None if all do."""
        b, factors = self.builder, [factor for dim in dims for factor in dim]
        shape = [factor.sizes[0] for factor in factors]
        whole = [size_of(dim) for dim in dims]
        found, place = None, 0
        for number, dim in enumerate(dims):
            for factor in dim:
                if number in which and not factor.is_static:
                    if factor.extent is None:
                        self.refuse("a size that is no linear function of the symbols")
                    size = [factor.sizes[0]]
                    limit = b.broadcast(self.count(factor.extent), size)
                    ahead = b.compare("lt", b.iota(torch.int64, size, 0), limit)
                    each = b.reshape(b.along(ahead, place, shape), whole)
                    found = each if found is None else b.binary("and", found, each)
                place += 1
        return found

    def hidden(self, old: Value, which: Sequence[int], number: Any) -> Value:
        """The new value, with `number` for what does not count along dims `which`."""
        return self.hide(self.of(old), self.dims_of(old), which, number)

    def hide(self, new: Value, dims: Sequence[Dim], which: Sequence[int], number: Any) -> Value:
        counting = self.counting(dims, which)
        if counting is None:
            return new
        b = self.builder
        if not isinstance(number, Value):
            number = b.constant(number, new.dtype, new.shape)
        return b.select(counting, new, number)

    def identity(self, kind: dict[str, str], dtype: torch.dtype) -> Any:
        name = kind["mlir"].partition("<")[2].rstrip(">")
        return _identity(name, dtype)

    # Inputs, checks and outputs.

    def _inputs(self, sizes_index: int) -> None:
        inputs = [draft.graph.inputs for draft in self.drafts]
        if len({len(each) for each in inputs}) != 1:
            self.refuse("the program reads other tensors at other sizes")
        for same in zip(*inputs):
            base = same[0]
            if len({each.order for each in same}) != 1:
                self.refuse("a tensor lies otherwise at other sizes")
            dims = [
                self.fitted([each.value.shape[d] for each in same]) for d in range(base.value.rank)
            ]
            new = Value(base.value.dtype, base.value.shape, base.value.bounds)
            self._graph.add_input(base.name, base.kind, base.order, new)
            if not all(map(is_static, dims)) and not self._graph.training:
                self._graph.inputs[-1].bounded = tuple(map(_symbol_of, dims))
            self.set(base.value, new, dims)
            if new.dtype.is_floating_point:
                self.differentiable.add(id(base.value))
        self._sizes = Value(torch.int64, (len(self.highs),))
        self._graph.add_input("sizes", "input", [0], self._sizes)
        if self._graph.training:  # derivatives of what norms and attention save read padding
            return
        self._graph.inputs[-1].bounds = self.highs
        if self._quotients:  # each as a function of one size, behind the largest (BoundKernels)
            forms = single_quotients(len(self.domains), self._quotients)
            self._graph.inputs[-1].bounds = (*self.highs, *itertools.chain(*forms))

    def _agree(self, node: Node, same: Sequence[Node], numbers: list[dict[int, int]]) -> None:
        """numbers: of the values of each graph so far, by identity."""
        read = {
            tuple(of[id(value)] for value in each.operands)
            for each, of in zip((node, *same), numbers)
        }
        if len(read) != 1:
            self.refuse("the program does other things at other sizes")
        for each, of in zip((node, *same), numbers):
            of.update((id(value), len(of) + i) for i, value in enumerate(each.results))
        for other in same:
            if (
                other.op != node.op
                or len(other.operands) != len(node.operands)
                or _kinds(other) != _kinds(node)
            ):
                self.refuse("the program does other things at other sizes")
            if node.op not in _OWN_ATTRIBUTES and other.attrs != node.attrs:
                self.refuse(f"{node.op} with attributes that depend on a size")

    def _check(self, node: Node, same: Sequence[Node]) -> None:
        """What a rule says of the results' sizes is what they are in each sample."""
        for number, result in enumerate(node.results):
            for sample, each in enumerate((node, *same)):
                told = tuple(size_of(dim, sample) for dim in self.dims_of(result))
                if told != each.results[number].shape:
                    self.refuse(f"the sizes that {node.op} gives are no function of the symbols")


def _kinds(node: Node) -> list[tuple[torch.dtype, int]]:
    return [(result.dtype, result.rank) for result in node.results]


def _symbol_of(dim: Dim) -> int:
    """The symbol whose size is that of the dim, -1 if there is none."""
    (factor,) = dim
    extent = factor.extent
    if extent is None or extent.constant or sorted(map(abs, extent.coefficients))[:-1].count(0) != (
        len(extent.coefficients) - 1
    ):  # fmt: skip
        return -1
    return extent.coefficients.index(1) if 1 in extent.coefficients else -1


# Their rules look at the attributes themselves.
_OWN_ATTRIBUTES = frozenset(
    {
        *("weft.slice", "weft.pad", "weft.constant", "weft.assert", "weft.scan", "weft.sort"),
        "weft.torch_fallback",
    }
)
