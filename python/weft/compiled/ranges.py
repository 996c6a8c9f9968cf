# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that serve a range of sizes: which there are, which calls they stand for, and their
verification.

Such a program is one for the largest sizes (frontend/sizes). A call's tensors are padded to these,
and what counts of its results is cut out of them.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree as pytree

from weft import errors
from weft.capture.isolated import Abandoned, call_isolated
from weft.capture.outputs import build_outputs
from weft.capture.signature import Declined, Signature, describe
from weft.compiled.sizes import Sizes, Wanted, program_range
from weft.compiled.specialize import Specialized, specialize
from weft.compiled.verification import Check, Exact, Verdict

if TYPE_CHECKING:
    from weft.capture.symbolic_trace import SizeSymbols
    from weft.compiled.programs import Environment, Programs, Request

# The name of the argument that holds the sizes.
_SIZES = "weft sizes"


@dataclass
class RangeProgram:
    """specialized: the program for padded arguments. shapes: as reports show them. calls: that it
    has answered. row_wise: whether each row of a batch is computed alone, None if unknown."""

    specialized: Specialized
    symbols: SizeSymbols
    shapes: str
    calls: int = 0
    row_wise: bool | None = None

    def padded(
        self, leaves: Sequence[Any], structure: pytree.TreeSpec, fill: float = 0.0
    ) -> tuple[tuple, dict[str, Any]] | None:
        """The arguments that the program takes for a call; None if it does not stand for that.

        fill: what floating-point padding holds.
        """
        sizes = self.sizes_of(leaves)
        if sizes is None:
            return None
        highs = [high for _, high in self.symbols.ranges]
        made = list(leaves)
        for number, dims in self.symbols.dims.items():
            shape = [each if isinstance(each, int) else each.at(highs) for each in dims]
            made[number] = _padded(leaves[number], shape, fill)
        args, kwargs = pytree.tree_unflatten(made, structure)
        return args, {**kwargs, _SIZES: torch.tensor(sizes)}

    def sizes_of(self, leaves: Sequence[Any]) -> list[int] | None:
        """Of the symbols in a call with these leaves."""
        ranges, dims = self.symbols.ranges, self.symbols.dims
        sizes: list[int | None] = [None] * len(ranges)
        for number, shape in dims.items():
            if number >= len(leaves):
                return None
            leaf = leaves[number]
            if not isinstance(leaf, torch.Tensor) or leaf.dim() != len(shape):
                return None
            if not leaf.is_contiguous():
                return None
            for extent, size in zip(shape, leaf.shape):
                if isinstance(extent, int):
                    if extent != size:
                        return None
                elif extent.constant == 0 and sorted(extent.coefficients)[-2:] in ([0, 1], [1]):
                    which = extent.coefficients.index(1)
                    if sizes[which] not in (None, size):
                        return None
                    sizes[which] = size
        if None in sizes:
            return None
        found: list[int] = sizes  # type: ignore[assignment]
        if not all(low <= size <= high for size, (low, high) in zip(found, ranges)):
            return None
        for number, shape in dims.items():
            for extent, size in zip(shape, leaves[number].shape):
                if not isinstance(extent, int) and extent.at(found) != size:
                    return None
        return found if all(guard.holds(found) for guard in self.symbols.guards) else None


@dataclass
class Ranges:
    """Of one callable.

    declined: why calls of a kind have no program for a range, by kind. seen: shapes of calls that
    have been compiled, by kind.
    """

    owner: weakref.ref[Programs]
    sizes: Sizes
    automatic: bool
    declined: dict[Any, str] = field(default_factory=dict)
    seen: dict[Any, list[tuple]] = field(default_factory=dict)

    @property
    def programs(self) -> Programs:
        """Those that have these ranges; they are there while a call is."""
        programs = self.owner()
        assert programs is not None
        return programs

    def forget(self) -> None:
        self.declined.clear()
        self.seen.clear()

    def find(
        self, args: tuple, kwargs: dict[str, Any], environments: Sequence[Environment]
    ) -> tuple[RangeProgram, tuple, dict[str, Any]] | None:
        """A verified program that stands for the call, and the arguments it takes."""
        flat: tuple | None = None
        for environment in environments:
            if not environment.ranges or not environment.core.holds():
                continue
            if flat is None:
                flat = pytree.tree_flatten((args, kwargs))
            for program in environment.ranges:
                padded = program.padded(*flat)
                if padded is not None and program.specialized.core.matches(*padded):
                    return program, *padded
        return None

    def wanted(self, request: Request) -> Wanted:
        """Which sizes of the call are to be symbols; none where it can have no such program.

        Raises: errors.SizeError.
        """
        signature = request.signature
        told = self.sizes.wanted(request.args, request.kwargs)
        leaves = pytree.tree_leaves((request.args, request.kwargs))
        if request.gradients or signature.objects or len(leaves) != len(signature.leaves):
            return {}
        kind, shapes = _kind(signature), tuple(tuple(t.shape) for t in signature.examples)
        if self.automatic:
            leaf_of = {slot: leaf for leaf, slot in signature.slots.items()}
            for before in self.seen.setdefault(kind, []):
                for slot, (old, new) in enumerate(zip(before, shapes)):
                    for dim, (a, b) in enumerate(zip(old, new)):
                        if a != b:
                            dims = told.setdefault(leaf_of[slot], {})
                            dims.setdefault(dim, program_range(b))
            self.seen[kind] = [*self.seen[kind], shapes][-8:]
        wanted: Wanted = {}
        for number, dims in told.items():
            fitting = {
                dim: each
                for dim, each in dims.items()
                if leaves[number].shape[dim] >= max(2, each[0])
            }
            if fitting:
                wanted[number] = fitting
        if _reason_key(kind, wanted) in self.declined:
            return {}
        return wanted

    def make(self, request: Request, apart: bool = False) -> RangeProgram | None:
        """The program for a range that holds the call's sizes, not verified; None if there is none,
        and `declined` has the reason.

        apart: in processes of their own.
        """
        try:
            return self._made(request, apart)
        except errors.CaptureError as why:
            self.decline(request, str(why))
        except Abandoned:
            raise
        except Exception as error:  # a bug of ours costs speed, never the user's result
            reason = f"compilation failed: {type(error).__name__}: {error}"
            self.decline(request, reason)
        return None

    def decline(self, request: Request, reason: str) -> None:
        """Calls like this one have programs for their sizes alone from now on."""
        self.declined[_reason_key(_kind(request.signature), request.wanted)] = reason

    def _made(self, request: Request, apart: bool) -> RangeProgram:
        start = time.perf_counter()
        programs, signature = self.programs, request.signature
        programs.totals.captures += 1
        call = (request.args, request.kwargs, request.references, request.state, signature)
        try:
            captured = programs.capture.capture(*call, wanted=request.wanted)
        finally:
            whole = time.perf_counter() - start
            programs.totals.capture_seconds += whole
        if captured.warned:
            raise Declined("the call warns")
        symbols = captured.symbols
        assert symbols is not None
        draft = RangeProgram(None, symbols, shapes_of(signature, symbols))  # type: ignore[arg-type]
        padded = draft.padded(*pytree.tree_flatten((request.args, request.kwargs)))
        if padded is None:
            raise Declined("the call is none of those that its program stands for")
        own = describe(*padded)
        if apart:  # from here on it lies in the cache
            call_isolated(lambda: _discard(specialize(captured, own, programs.options)), {})
        draft.specialized = specialize(captured, own, programs.options)
        if draft.specialized.draws:
            raise Declined("random numbers of a symbolic number")
        draft.specialized.shapes = draft.shapes
        lower = captured.lower_seconds
        seconds = {"capture": whole - lower, "lower": lower}
        programs.totals.compile_seconds += draft.specialized.seconds["build"]
        draft.specialized.seconds = {**seconds, **draft.specialized.seconds}
        return draft


def _discard(made: Specialized) -> None:
    """A child's program stays with the child."""


def shapes_of(signature: Signature, symbols: SizeSymbols) -> str:
    """As `specialize.shapes_of`, with ranges for symbols: `i64[1, 2..512]`."""
    from weft.compiled.specialize import shapes_of as shapes

    lows, highs = zip(*symbols.ranges)
    texts = []
    leaf_of = {slot: leaf for leaf, slot in signature.slots.items()}
    for slot, example in enumerate(signature.examples):
        one = shapes(replace(signature, examples=[example]))
        dims = symbols.dims.get(leaf_of[slot])
        if dims is not None:
            sizes = [
                str(d) if isinstance(d, int) else f"{d.least(lows, highs)}..{d.at(highs)}"
                for d in dims
            ]
            one = f"{one.partition('[')[0]}[{', '.join(sizes)}]"
        texts.append(one)
    return ", ".join(texts)


def _padded(tensor: torch.Tensor, shape: Sequence[int], fill: float) -> torch.Tensor:
    """The tensor at the beginning of one of that shape, in memory of its own."""
    if tensor.dtype.is_floating_point and fill:
        made = torch.full(shape, fill, dtype=tensor.dtype)
    else:
        made = torch.zeros(shape, dtype=tensor.dtype)
    place = made
    for dim, size in enumerate(tensor.shape):
        place = place.narrow(dim, 0, size)
    place.copy_(tensor.detach())
    return made


def _kind(signature: Signature) -> Any:
    """The same for calls that differ in sizes alone."""
    tensors = tuple((t.dtype, t.dim(), t.requires_grad) for t in signature.examples)
    return repr((signature.arguments, signature.names)), tensors


def _reason_key(kind: Any, wanted: Wanted) -> Any:
    return kind, tuple(sorted((number, *sorted(dims.items())) for number, dims in wanted.items()))


# Verification.


def begin(request: Request, program: RangeProgram) -> Check:
    """The call, computed by the program ahead of PyTorch. What padding holds must not matter: it is
    no number here. Raises: Declined."""
    return _check(request, program, pytree.tree_flatten((request.args, request.kwargs)))


def conclude(
    check: Check,
    programs: Programs,
    request: Request,
    value: Any,
    original: Callable[..., Any],
) -> str | None:
    """What is different in PyTorch's value."""
    args, kwargs = request.args, request.kwargs
    try:
        finding = check.conclude(
            value, lambda: programs.change_of(request.state), lambda: original(*args, **kwargs)
        )
    except Exception as error:  # a bug of ours costs speed, never the user's result
        return f"it cannot be compared: {type(error).__name__}: {error}"
    return None if finding.verdict is Verdict.SAME else finding.reason


def differs_at_ends(
    programs: Programs, original: Callable[..., Any], request: Request, program: RangeProgram
) -> str | None:
    """What is different at the ends of the range, where sizes are made of the call's own elements;
    found out in a process where nobody sees it."""

    def compare() -> str | None:
        leaves, structure = pytree.tree_flatten((request.args, request.kwargs))
        for sizes in _ends(program.symbols.ranges):
            made = _resized(leaves, program.symbols, sizes)
            args, kwargs = pytree.tree_unflatten(made, structure)
            check = _check(request, program, (made, structure))
            value = original(*args, **kwargs)
            there = replace(request, args=args, kwargs=kwargs)
            if (reason := conclude(check, programs, there, value, original)) is not None:
                return f"at sizes {', '.join(map(str, sizes))}: {reason}"
        return None

    try:
        return call_isolated(compare, {})
    except Abandoned:
        raise
    except Exception as error:
        return f"at the ends of its range it cannot be compared: {type(error).__name__}: {error}"


def _ends(ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    """And one between them, odd, lest all be whole tiles."""
    yield tuple(high for _, high in ranges)
    yield tuple(min(max((low + high) // 2 | 1, low), high) for low, high in ranges)
    yield tuple(low for low, _ in ranges)


def _resized(leaves: list[Any], symbols: SizeSymbols, sizes: Sequence[int]) -> list[Any]:
    """The same call at other sizes: elements are left out, or come again."""
    made = list(leaves)
    for number, dims in symbols.dims.items():
        tensor = leaves[number].detach()
        for dim, extent in enumerate(dims):
            if not isinstance(extent, int):
                places = torch.arange(extent.at(sizes)) % tensor.shape[dim]
                tensor = tensor.index_select(dim, places)
        made[number] = tensor.contiguous()
    return made


class _RangeCheck(Check):
    """What counts of the results is compared."""

    def _exact(self) -> dict[int, Exact]:
        whole = super()._exact()
        results = [whole[id(each)] for each in self._results]
        values = build_outputs(
            self._program.wiring.outputs(), [e.value for e in results], self._signature.examples
        )
        magnitude = max(each.magnitude for each in results)
        coarsest = max(each.coarsest for each in results)
        parts = {
            id(own): Exact(value, magnitude, coarsest)
            for own, value in zip(_tensors(self._value), _tensors(values), strict=True)
        }
        return {**whole, **parts}


def _tensors(value: Any) -> list[torch.Tensor]:
    return [each for each in pytree.tree_leaves(value) if isinstance(each, torch.Tensor)]


def _check(request: Request, program: RangeProgram, flat: tuple) -> Check:
    padded = program.padded(*flat, fill=math.nan)
    if padded is None:
        raise Declined("a size in its range is none that it stands for")
    return _RangeCheck(program.specialized, describe(*padded), request.state, *padded)
