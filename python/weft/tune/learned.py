# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A cost model that is learned from measurements, and the choice of the next candidate by it.

The model is scikit-learn's gradient boosting on the schedule's numbers, the analytical prediction,
and the footprint, reuse and strides of each operand (`tune/access.py`). Without scikit-learn,
candidates are taken in the order of the analytical model.
"""

from __future__ import annotations

import importlib.util
import math
import random
from collections.abc import Sequence

from weft.tune.task import Candidate

_ENOUGH = 6  # measurements that are needed before anything is learned
_PARENTS = 4
_EXPLORED = 0.15  # the share of the proposals that are drawn at random, whatever the model says


class LearnedModel:
    """A model of the time of candidates. measured: candidates with their seconds."""

    def __init__(self, measured: Sequence[tuple[Candidate, float]]) -> None:
        self._model = None
        known = [(each, seconds) for each, seconds in measured if each.numbers]
        if len(known) < _ENOUGH or importlib.util.find_spec("sklearn") is None:
            return
        from sklearn.ensemble import GradientBoostingRegressor

        self._model = GradientBoostingRegressor(
            n_estimators=60, max_depth=3, learning_rate=0.15, random_state=0
        )
        features = [each.features() for each, _ in known]
        self._model.fit(features, [math.log(seconds) for _, seconds in known])

    def seconds(self, candidates: Sequence[Candidate]) -> list[float] | None:
        """The predicted seconds of each candidate; None while there are too few measurements."""
        if self._model is None or not candidates:
            return None
        logs = self._model.predict([each.features() for each in candidates])
        return [math.exp(each) for each in logs]


def proposed(
    left: Sequence[Candidate],
    measured: Sequence[tuple[Candidate, float]],
    model: LearnedModel,
    generator: random.Random,
) -> Candidate:
    """The next candidate to measure. left: those not measured yet, by analytical rank; not
    empty."""
    times = model.seconds(left)
    if times is None:
        return left[0]
    if generator.random() < _EXPLORED:
        return generator.choice(list(left))
    parents = sorted(measured, key=lambda each: each[1])[:_PARENTS]
    near = {
        n for n, each in enumerate(left) if any(_is_child(each, parent) for parent, _ in parents)
    }
    # Children of the fastest ones come before others that are predicted about as fast.
    return left[min(range(len(left)), key=lambda n: times[n] * (0.98 if n in near else 1.0))]


def _is_child(candidate: Candidate, parent: Candidate) -> bool:
    """Whether it differs from its parent in at most two numbers."""
    shared = candidate.numbers.keys() & parent.numbers.keys()
    changed = sum(candidate.numbers[name] != parent.numbers[name] for name in shared)
    return bool(shared) and changed <= 2
