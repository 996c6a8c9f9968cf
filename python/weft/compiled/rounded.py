# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What rounding may make of gradients. Behind a kink, as of a ReLU, several may be right: the last
bit of a value may decide which slope it has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from weft.compiled.distances import MOST_IN_FLOAT64, TOLERANCES, is_near
from weft.compiled.value_pairs import Differs
from weft.frontend.dtypes import NAMES
from weft.frontend.random_rounding import RandomRounding, Results, Spread, spreads_of

# So often values are rounded at random to find the slopes that a computation has had. Where three
# values are as likely on one side of a kink as on the other, one time in eight gives them.
_MOST_RUNS = 16


@dataclass(frozen=True)
class Rounded:
    """What rounding may make of the results of a graph. compute: gives these, with values rounded
    at random. graph: as JSON. what: the name of the results."""

    compute: Callable[[RandomRounding | None], Results]
    graph: bytes
    what: str

    @functools.cached_property
    def spreads(self) -> list[Spread | None]:
        """What rounding does to each of the results. Raises: Differs, if the graph cannot be run
        so."""
        most = max(MOST_IN_FLOAT64, of_halves(self.graph), *_tolerances(self.graph, torch.float32))
        try:
            return spreads_of(self.compute, most)
        except Exception as error:
            raise self._no_say(error) from None

    def gives(
        self, found: Mapping[int, Sequence[torch.Tensor]], exact: Results, tolerance: float
    ) -> bool:
        """Whether each of the tensors is what some rounding makes of a result. found: the tensors
        by the number of the result. exact: the results in float64.

        Raises: Differs, if the graph cannot be run so.
        """
        left = [(place, each) for place, tensors in found.items() for each in tensors]
        for run in self.runs(exact):
            left = [
                (place, each)
                for place, each in left
                if run[place] is None or not is_near(run[place], each, tolerance)
            ]
            if not left:
                return True
        return False

    def runs(self, exact: Results) -> Iterator[Results]:
        """The results along each of the slopes that are tried. Raises: Differs, as `gives`."""
        yield exact
        try:
            yield self.compute(None)
            for seed in range(_MOST_RUNS):
                yield self.compute(RandomRounding(seed))
        except Exception as error:
            raise self._no_say(error) from None

    def _no_say(self, error: Exception) -> Differs:
        return Differs(f"{self.what} differ, and random rounding has no say: {error}")


def of_halves(graph: bytes) -> float:
    """The largest tolerance among the halves of a graph, given as JSON: of autocast's types. 0 if
    it has none."""
    return max(_tolerances(graph, torch.bfloat16, torch.float16))


def _tolerances(graph: bytes, *dtypes: torch.dtype) -> list[float]:
    return [TOLERANCES[x] if f'"{NAMES[x]}"'.encode() in graph else 0.0 for x in dtypes]
