# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses and times of training by PyTorch and by Weft, as a picture."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

_WINDOW = 15  # steps of which a time is the median


def draw(
    losses: dict[str, Sequence[float]], seconds: dict[str, Sequence[float]], path: Path
) -> None:
    """Writes an SVG, which takes matplotlib, of requirements-bench.txt. losses, seconds: of each
    step, by what made it."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "weft"
    from matplotlib import pyplot

    figure, (curves, times) = pyplot.subplots(1, 2, figsize=(9, 3), layout="constrained")
    for number, (name, values) in enumerate(losses.items()):
        # One lies upon the other, and is to be seen below it.
        style = {"linewidth": 3, "alpha": 0.5} if number == 0 else {"linewidth": 1}
        curves.plot(values, label=name, **style)
        # A step that compiles takes hundreds of times as long: whole windows leave it out.
        shown = [1e3 * each for each in _medians(seconds[name])]
        times.plot(range(_WINDOW, _WINDOW + len(shown)), shown, label=name)
    curves.set(xlabel="step", ylabel="loss")
    times.set(xlabel="step", ylabel=f"ms a step, median of {_WINDOW}", ylim=(0, None))
    curves.legend()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _medians(values: Sequence[float]) -> list[float]:
    return [statistics.median(values[at - _WINDOW : at]) for at in range(_WINDOW, len(values) + 1)]
