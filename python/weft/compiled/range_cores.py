# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C++ object that knows for which calls a program for a range of sizes stands."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from weft import _core
from weft.capture.signature import Signature

if TYPE_CHECKING:
    from weft.capture.symbolic_trace import SizeSymbols


def core_of(
    signature: Signature, symbols: SizeSymbols, spread: Set[int], kept: Sequence[int] = ()
) -> _core.SizeRange:
    """The C++ object that knows the calls. signature: of one call, with counters as tensors. Guards
    of a single symbol are part of its range. spread: leaves without symbolic sizes whose rows may
    be parts of longer ones. kept: slots whose own tensors the program may return or write to."""
    constant = (0,) * len(symbols.ranges)
    shapes = {
        signature.slots[leaf]: tuple(
            (constant, dim) if isinstance(dim, int) else (dim.coefficients, dim.constant)
            for dim in dims
        )
        for leaf, dims in symbols.dims.items()
    }
    for leaf, slot in signature.lengths.items():
        extent = symbols.lengths[leaf]
        shapes[slot] = ((extent.coefficients, extent.constant), (constant, 0))
    for leaf in spread:
        slot = signature.slots[leaf]
        shapes[slot] = tuple((constant, size) for size in signature.examples[slot].shape)
    guards = [each.holds for each in symbols.guards if not each.is_in_ranges]
    pattern = _core.Specialization(signature.arguments, signature.names, signature.examples)
    quotients = [
        ((each.dividend.coefficients, each.dividend.constant), each.divisor)
        for each in symbols.quotients
    ]
    core = _core.SizeRange(pattern, shapes, [*symbols.ranges], guards, [*kept], quotients)
    core.apart = [signature.slots[leaf] for leaf in spread]
    return core
