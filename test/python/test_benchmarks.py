# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmarks' harness: what it computes and prints, and its processes."""

import io
import json
from argparse import Namespace

import numpy as np
import pytest
import torch
from benchmarks import overhead, schedules, shapes, tuned_models
from benchmarks.run import Model, parse
from rich.console import Console

from weft.benchmark import systems
from weft.benchmark.case import Case
from weft.benchmark.flops import count
from weft.benchmark.results import (
    ModelResult,
    RunResult,
    SystemResult,
    as_json,
    errors_table,
    notes,
    print_run,
    times_table,
)
from weft.benchmark.run import largest_error
from weft.benchmark.worker import Failed, Ready, Worker


@pytest.fixture
def run():
    measured_systems = {
        "eager": SystemResult("torch", seconds=4e-3, error=2e-7),
        "openvino": SystemResult(failed="openvino is not installed"),
        "inductor": SystemResult("frozen", seconds=2e-3, error=1e-7),
        "weft": SystemResult("native", seconds=1e-3, error=3e-7),
    }
    model = ModelResult("mlp", "MLP", flops=5_000_000, systems=measured_systems)
    measured = {"peaks": [9e9, 10e9, 11e9], "transfers": [30e-9, 26e-9, 165e-9]}
    return RunResult("CPU", 2, 3, [model], **measured)


def text(table) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(table)
    return console.file.getvalue()


def test_operations_of_attention():
    linear, x = torch.nn.Linear(8, 8), torch.randn(1, 2, 16, 8)
    attention = torch.nn.functional.scaled_dot_product_attention
    assert count(lambda: linear(x)) == 2 * 32 * 8 * 8
    with torch.no_grad():
        assert count(lambda: attention(x, x, x)) == 2 * (2 * 2 * 16 * 16 * 8)
        assert count(lambda: attention(x, x, x, is_causal=True)) == 2 * (2 * 16 * 16 * 8)
        hidden = torch.zeros(16, 16, dtype=torch.bool).fill_diagonal_(True)
        assert count(lambda: attention(x, x, x, attn_mask=hidden)) == 2 * (2 * 2 * 16 * 16 * 8)


def test_operations_where_a_module_is_given_a_view_of_a_parameter():
    linear, token = torch.nn.Linear(8, 8), torch.nn.Parameter(torch.randn(1, 8))
    with torch.inference_mode():
        assert count(lambda: linear(token.expand(4, -1))) == 2 * 4 * 8 * 8


def test_ratios(run):
    (model,) = run.models
    assert model.ratio("weft") == 4 and model.ratio("inductor") == 2
    assert model.ratio("openvino") is None and model.ratio("absent") is None
    assert model.best_peer_ratio() == 2
    model.systems["weft-bf16"] = SystemResult("bfloat16", seconds=1e-4)
    assert model.best_peer_ratio() == 2  # no peer
    assert ModelResult("empty").best_peer_ratio() is None


def test_table_of_times(run):
    row = text(times_table(run)).splitlines()[-2]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells == ["MLP", "4.000 (1.00)", "–", "2.000 (2.00)", "1.000 (4.00)", "2.00", "50"]


def test_table_of_errors(run):
    row = text(errors_table(run)).splitlines()[-2]
    assert [cell.strip() for cell in row.strip("│").split("│")][1:] == [
        "2.0e-07",
        "–",
        "1.0e-07",
        "3.0e-07",
    ]


def test_notes_name_settings_and_what_is_missing(run):
    assert notes(run) == [
        "eager: torch",
        "inductor: frozen",
        "weft: native",
        "mlp, openvino: not measured: openvino is not installed",
    ]


def test_json(run):
    document = json.loads(json.dumps(as_json(run)))
    (model,) = document["models"]
    assert document["peak"] == 10e9 and model["best_peer_over_weft"] == 2
    assert document["transfer"] == [26e-9, 30e-9, 165e-9]
    assert model["eager_over_system"]["openvino"] is None


def test_processors_that_share_a_cache_or_not_are_seen(run):
    console = Console(file=io.StringIO(), width=160)
    print_run(run, console)
    assert "from one processor to another: 26 to 165 ns, median 30" in console.file.getvalue()
    run.transfers.clear()
    assert as_json(run)["transfer"] is None
    print_run(run, Console(file=io.StringIO()))


def test_error_of_outputs():
    reference = [np.zeros(2), np.zeros((1, 3))]
    assert largest_error([np.array([0, -0.5]), np.zeros((1, 3))], reference) == 0.5
    with pytest.raises(ValueError, match=r"expected outputs of shapes .* found \[\(2,\)\]"):
        largest_error([np.zeros(2)], reference)
    assert largest_error([], []) is None
    assert largest_error([np.zeros((0, 3))], [np.zeros((0, 3))]) == 0.0


def test_all_models_by_default():
    options = parse(["--systems", "eager", "weft"])
    assert options.models == [] and list(options.systems) == ["eager", "weft"]


def test_a_process_measures(tmp_path):
    with Worker("eager", Model("mlp-b1"), 1, tmp_path / "log") as worker:
        assert isinstance(worker.state, Ready) and worker.state.title.startswith("MLP")
        assert all(time > 0 for time in worker.ask("times", 0.0))
        (output,) = worker.ask("outputs")
        assert output.shape == (1, 10)
    assert not worker.process.is_alive()


def test_a_system_that_fails_says_why(tmp_path):
    with Worker("eager", Model("no such model"), 1, tmp_path / "log") as worker:
        assert isinstance(worker.state, Failed)
        assert worker.state.reason == "KeyError: 'no such model'"


class Clamps(torch.nn.Module):
    """Sets an attribute, as the first call alone does to any effect."""

    window = 8

    def forward(self, x):
        self.window = min(self.window, x.shape[0])
        return x[: self.window] * 2


class Counts(torch.nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls if id(x) else x  # which no capture takes


def test_a_first_call_may_set_attributes():
    x = torch.ones(4)
    assert systems.weft(Case("clamps", Clamps(), (x,)), threads=1).call().tolist() == [2] * 4
    with pytest.raises(RuntimeError, match="changes attributes"):
        systems.weft(Case("counts", Counts(), (x,)), threads=1)


def test_shares_of_shapes():
    options = Namespace(threads=1, seconds=0.0)
    assert shapes.columns((16, 32, 48), options).share > 0
    row = shapes.linear((16, 32, 48), options)
    assert row.name == "16 x 32 x 48" and row.schedule.startswith("contraction ")
    assert row.seconds > 0 and row.share > 0
    halves = [shapes.Row("a", "", 1e-6, 0.25), shapes.Row("b", "", 2e-6, 1.0)]
    assert "geometric mean 50%, least 25%" in text(shapes.table_of("matmuls", halves))


def test_space_of_schedules():
    space = list(schedules.candidates(768))
    assert len(space) == len(set(space))
    assert {"rows=6,groups=4,chunk=768,panels=2", "rows=14,groups=2,chunk=192,panels=8"} <= set(
        space
    )
    assert not any("rows=8,groups=4," in each or "chunk=100," in each for each in space)


def test_search_of_schedules(monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    space = ["rows=3,groups=2,chunk=64,panels=1", "rows=1,groups=1,chunk=63,panels=1"]
    own = schedules.text_of(schedules.Linear(64, 40, 64).compile("", 1).schedule)
    space = [own, *space, "rows=2,groups=1,chunk=64,panels=1"]
    monkeypatch.setattr(schedules, "candidates", lambda depth: space)
    options = schedules.parse(["64x40x64", "--rounds", "1", "--seconds", "0"])
    (shape,) = options.shapes
    found = schedules.search(schedules.Linear(*shape), shape[2], options)
    assert found.tried == 3  # 63 does not divide 64
    assert found.chosen == own and found.best in space
    assert found.ratio >= 1
    assert schedules.search(schedules.Linear(1, 64, 64), 64, options) is None


def test_table_of_schedules():
    found = {(1, 2, 3): None, (4, 5, 6): schedules.Found("a", 2e-6, "b", 1e-6, 7)}
    found[7, 8, 9] = schedules.Found("c", 8e-6, "c", 8e-6, 7)
    printed = text(schedules.table_of(found))
    assert "another emitter" in printed and "2.000" in printed
    assert "geometric mean 1.414, worst 2.000 at 4x5x6" in printed


def test_overhead_is_shown_beside_its_limit():
    lines = [
        overhead.Line("a call", limit=2, value=1.5437, unit="µs"),
        overhead.Line("growth", limit=1.2, value=1.3, unit="×"),
    ]
    call, growth = (line for line in text(overhead.table(lines)).splitlines() if "│" in line)
    assert "1.54 µs" in call and "missed" not in call
    assert "1.3 ×" in growth and "missed" in growth


def test_overhead_of_a_compilation(monkeypatch, tmp_path):
    case = Case("small", torch.nn.Linear(3, 4).eval(), (torch.randn(2, 3),))
    monkeypatch.setitem(overhead.CASES, "small", lambda: case)
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    cold = overhead.compile_case("small")
    assert 0 < cold.ready < cold.first_result and cold.again > 0
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    assert overhead.compile_case("small").again is None  # found, not compiled


def test_tuned_models_are_a_table(monkeypatch, capsys, tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(48, 80), torch.nn.ReLU()).eval()
    case = Case("a layer", model, (torch.randn(24, 48),))
    monkeypatch.setitem(tuned_models.MODELS, "layer", lambda: case)
    records = str(tmp_path / "kernels.db")
    before = torch.get_num_threads()
    try:
        tuned_models.main(["layer", "--trials", "2", "--rounds", "2", "--records", records])
        with pytest.raises(SystemExit):
            tuned_models.main(["nothing"])
    finally:
        torch.set_num_threads(before)
    printed = capsys.readouterr()
    (row,) = [line for line in printed.out.splitlines() if line.startswith("| a layer")]
    cells = [each.strip() for each in row.strip("|").split("|")]
    untuned, tuned, ratio = map(float, cells[1:4])
    assert untuned > 0 and tuned > 0 and ratio > 0 and cells[4].endswith(" of 1")
    assert "geometric mean of untuned ÷ tuned: " in printed.out
    assert "found 'nothing'" in printed.err
