# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The chart of a run, from made-up results. `make test-bench` runs this file: drawing takes the
packages of requirements-bench.txt."""

import json
import xml.etree.ElementTree as ElementTree

import pytest
from benchmarks.chart import Bars, bars_of, main, with_chart

from weft.benchmark.results import ModelResult, RunResult, SystemResult, as_json

CAPTION = (
    "eager ÷ system (more is faster), medians of 3 interleaved rounds; 2026-01-31, CPU, 2 threads"
)
PAGE = "above\n<!-- chart: begin (make chart) -->\nold\n<!-- chart: end -->\nbelow\n"


@pytest.fixture
def document():
    first = ModelResult("mlp", "MLP", flops=5_000_000)
    first.systems = {
        "eager": SystemResult("torch 2, no_grad", seconds=4e-3),
        "openvino": SystemResult(failed="openvino is not installed"),
        "weft": SystemResult("weft 0", seconds=1e-3),
    }
    second = ModelResult("conv", "conv net", flops=1)
    second.systems = {"eager": SystemResult(seconds=1.0), "inductor": SystemResult(seconds=0.5)}
    nothing = ModelResult("none", systems={"eager": SystemResult(failed="no")})
    run = RunResult("CPU", 2, 3, [first, second, nothing], peaks=[10e9], date="2026-01-31")
    return json.loads(json.dumps(as_json(run)))


def test_bars(document):
    bars = bars_of(document)
    assert bars == Bars(
        ["MLP\nWeft: 50 % of peak", "conv net"],
        {"openvino": [None, None], "weft": [4.0, None], "inductor": [None, 2.0]},
        CAPTION,
        {"eager": "torch 2, no_grad", "weft": "weft 0"},
    )


def test_drawing(document, tmp_path):
    results, chart, page = (tmp_path / name for name in ("a.json", "a.svg", "page.md"))
    results.write_text(json.dumps(document))
    page.write_text(PAGE)
    assert main([str(results), str(chart), "--readme", str(page)]) == 0
    first = chart.read_bytes()
    assert ElementTree.fromstring(first).tag.endswith("svg")
    for text in ("MLP", "conv net", "4.00", "2.00", "weft"):
        assert f"<!-- {text} -->".encode() in first  # beside the outlines of its letters
    block = f"![{CAPTION}](a.svg)\n\n{CAPTION}:\n\n- eager: torch 2, no_grad\n- weft: weft 0"
    assert page.read_text() == PAGE.replace("old", block)
    assert main([str(results), str(chart)]) == 0
    assert chart.read_bytes() == first


def test_a_page_without_the_place():
    bars = Bars([], {}, "", {})
    with pytest.raises(ValueError, match="expected the markers"):
        with_chart("no place", "a.svg", bars)
    with_chart(open("README.md", encoding="utf-8").read(), "a.svg", bars)
