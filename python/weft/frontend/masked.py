# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements chosen by a mask, whose number only a run knows: all elements, and the mask.

What is done to each element is done to all of them; sums, means and writes back to where a mask
chose them look at the mask. The bound is the number of the mask's elements; nothing is moved until
the program returns them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from weft.frontend.fallback import flatten_results
from weft.frontend.graph import Graph, Value
from weft.frontend.lowered import Decline
from weft.frontend.pairs import Pair
from weft.frontend.strides import is_static
from weft.frontend.table import Rule, Site, entering

_RULES: dict[str, Rule] = {}

# What gives elements by what data say, of which a rule knows how.
_CHOOSING = frozenset(("weft_packed.rows.default", "weft_packed.sizes.default")) | frozenset(
    f"aten.{name}"
    for name in (
        "argwhere.default",
        "index.Tensor",
        "masked_select.default",
        "nonzero.default",
        "nonzero_numpy.default",
        "_unique2.default",
        "unique_consecutive.default",
        "where.default",
    )
)


@dataclass(frozen=True)
class Masked:
    """value: those of its dim `dim` count where mask: (n) holds. place: the mask as it was given,
    by which others are known to choose the same. columns: (n, 1) each, of a table (n, columns) of
    places, which PyTorch lays out column by column. table, column: where the value is a column of
    such a table and shows its memory, that table, and which. indexed: of such a table or column,
    the shape of what the places are in."""

    value: Value
    mask: Value
    place: Value
    dim: int = 0
    columns: tuple[Value, ...] = ()
    table: Value | None = None
    column: int | None = None
    indexed: tuple[int, ...] | None = None

    def holding(self, value: Value) -> Masked:
        """Another value of the same rows."""
        return Masked(value, self.mask, self.place, self.dim)


def masked(*targets: str) -> Callable[[Rule], Rule]:
    return entering(_RULES, targets)


def gives_masked(op: torch._ops.OpOverload, result: Any) -> bool:
    """Whether the call chooses elements by a mask."""
    return f"{op}" in _CHOOSING and not all(map(is_static, flatten_results(result)))


def lower_masked(
    op: torch._ops.OpOverload, site: Site, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """The result of a call on, or giving, chosen elements.

    Raises: Decline, if there is no rule, or numbers are complex.
    """
    given, results = (flatten_results(each) for each in ((args, *kwargs.values()), site.results))
    if any(isinstance(x, Pair) for x in given) or any(
        getattr(x, "dtype", torch.bool).is_complex for x in results
    ):
        raise Decline("complex numbers that a mask chooses, or that choose")
    rule = _RULES.get(str(op))
    if rule is None:
        raise Decline(f"a size that {op} gives depends on data")
    return rule(site, *args, **kwargs)


def same_value(graph: Graph, one: Value, other: Value, depth: int = 4) -> bool:
    """Whether two values are computed alike, as the mask of `x[x > 0] = f(x[x > 0])` is twice."""
    if one is other:
        return True
    makers = [
        next((node for node in graph.nodes if any(each is v for v in node.results)), None)
        for each in (one, other)
    ]
    if depth == 0 or any(maker is None for maker in makers):
        return False
    x, y = makers
    if (x.op, x.attrs, len(x.operands)) != (y.op, y.attrs, len(y.operands)):
        return False
    if x.op == "weft.torch_fallback":
        return False
    if [r is one for r in x.results] != [r is other for r in y.results]:
        return False
    types = [[(r.dtype, r.shape) for r in node.results] for node in (x, y)]
    operands = zip(x.operands, y.operands)
    return types[0] == types[1] and all(same_value(graph, a, b, depth - 1) for a, b in operands)
