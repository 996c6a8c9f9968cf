# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.chart RESULTS.json CHART.svg`: a run as bars.

One group of bars for each model: how many times faster than PyTorch eager each system is. The
model's name carries the share of the measured peak FLOP/s that Weft reaches.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BEGIN, _END = "<!-- chart: begin (make chart) -->\n", "<!-- chart: end -->"


@dataclass(frozen=True)
class Bars:
    """labels: of the models. ratios: for each system besides eager, one per model: eager's
    time over its own, or None where it was not measured. caption: when, where and how.
    settings: of each system, eager's included, with its version."""

    labels: list[str]
    ratios: dict[str, list[float | None]]
    caption: str
    settings: dict[str, str]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(": ")[2].partition("\n")[0])
    parser.add_argument("results", type=Path, help="JSON of benchmarks.run")
    parser.add_argument("chart", type=Path, help="the SVG file")
    parser.add_argument("--readme", type=Path, help="a page whose chart shall be this one")
    options = parser.parse_args(arguments)
    bars = bars_of(json.loads(options.results.read_text("utf-8")))
    draw(bars, options.chart)
    if options.readme is not None:
        page = options.readme.read_text("utf-8")
        where = os.path.relpath(options.chart, options.readme.parent)
        options.readme.write_text(with_chart(page, where, bars), "utf-8")
    return 0


def bars_of(document: dict[str, Any]) -> Bars:
    """What is drawn of a run; models that eager was not measured on are left out."""
    models = [model for model in document["models"] if _ratio(model, "eager") is not None]
    systems = dict.fromkeys(name for model in models for name in model["eager_over_system"])
    ratios = {
        name: [_ratio(model, name) for model in models] for name in systems if name != "eager"
    }
    caption = (
        f"eager ÷ system (more is faster), medians of {document['rounds']} interleaved rounds; "
        f"{document['date']}, {document['machine']}, {document['threads']} threads"
    )
    settings = {
        name: result["settings"]
        for model in models
        for name, result in model["systems"].items()
        if result["settings"]
    }
    labels = [_label(model, document["peak"]) for model in models]
    return Bars(labels, ratios, caption, settings)


def draw(bars: Bars, path: Path) -> None:
    """Writes an SVG that is the same for the same bars."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "weft"
    from matplotlib import pyplot

    height = 0.8 / max(len(bars.ratios), 1)
    rows = 1.2 + len(bars.labels) * (0.2 + 0.16 * len(bars.ratios))
    figure, axes = pyplot.subplots(figsize=(9, rows), layout="constrained")
    for number, (system, ratios) in enumerate(bars.ratios.items()):
        places = [row + number * height for row in range(len(bars.labels))]
        drawn = axes.barh(places, [ratio or 0.0 for ratio in ratios], height, label=system)
        axes.bar_label(drawn, [f"{r:.2f}" if r else "–" for r in ratios], padding=2, fontsize=7)
    middle = (len(bars.ratios) - 1) * height / 2
    axes.set_yticks([row + middle for row in range(len(bars.labels))], bars.labels)
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel(bars.caption.replace("; ", ";\n"), fontsize=7)
    figure.legend(loc="outside upper center", ncols=len(bars.ratios), fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def with_chart(page: str, chart: str, bars: Bars) -> str:
    """The page with the chart, and what was measured, between its two markers.

    Raises: ValueError, if it has not both.
    """
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"expected the markers {_BEGIN.strip()} and {_END} in the page")
    settings = "".join(f"- {name}: {text}\n" for name, text in bars.settings.items())
    block = f"![{bars.caption}]({chart})\n\n{bars.caption}:\n\n{settings}"
    return f"{before}{begin}{block}{end}{after}"


def _ratio(model: dict[str, Any], system: str) -> float | None:
    return model["eager_over_system"].get(system)


def _label(model: dict[str, Any], peak: float | None) -> str:
    seconds = model["systems"].get("weft", {}).get("seconds")
    if peak is None or seconds is None:
        return model["title"]
    return f"{model['title']}\nWeft: {100 * model['flops'] / seconds / peak:.0f} % of peak"


if __name__ == "__main__":
    sys.exit(main())
