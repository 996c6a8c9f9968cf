# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`compiled.profile()`: kernels with their lines, work and time, as a table and as a trace."""

import json

import pytest
import torch

import weft
from weft import _core
from weft.reporting import roofline

nn = torch.nn
pytestmark = pytest.mark.usefixtures("no_grad")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(33, 65)
        self.second = nn.Linear(65, 7)

    def forward(self, x):
        hidden = torch.special.erfcx(self.first(x).exp() + 1)
        return self.second(hidden).softmax(-1)


@pytest.fixture
def peaks(monkeypatch):
    monkeypatch.setattr(roofline, "peak_flops", lambda threads: 100e9)
    monkeypatch.setattr(roofline, "peak_bandwidth", lambda threads: 10e9)


@pytest.fixture
def profile(peaks):
    return weft.compile(Block()).profile(torch.randn(5, 33), repeats=4)


def test_every_call_of_the_program_is_there(profile):
    assert profile.repeats == 4 and profile.title == "f32[5, 33]"
    assert profile.threads == weft.get_num_threads()
    first = Block.forward.__code__.co_firstlineno + 1
    kinds = [kernel.kind for kernel in profile.kernels]
    assert kinds.count("contraction") == 2 and kinds.count("torch") == 1
    for kernel in profile.kernels:
        assert len(kernel.samples) == 4 and min(kernel.samples) >= 0
        assert kernel.least <= kernel.seconds
        own = {line for file, line in kernel.lines if file == __file__}
        assert own and own <= {first, first + 1}
    one, other = (kernel for kernel in profile.kernels if kernel.kind == "contraction")
    assert one.flops >= 2 * 5 * 33 * 65 and (__file__, first) in one.lines
    assert other.flops >= 2 * 5 * 65 * 7 and (__file__, first + 1) in other.lines
    assert "rows" in one.schedule
    (fallback,) = (kernel for kernel in profile.kernels if kernel.kind == "torch")
    assert "erfcx" in fallback.kernel and fallback.lines[0] == (__file__, first)


def test_sums(profile):
    calls = [sum(kernel.samples[run] for kernel in profile.kernels) for run in range(4)]
    assert profile.least == pytest.approx(min(calls))
    assert min(calls) <= profile.seconds <= max(calls)


def test_share_of_the_limit(profile):
    for kernel in profile.kernels:
        if kernel.kind == "torch":
            assert profile.limit_share(kernel) is None
            continue
        assert kernel.flops_per_second == kernel.flops / kernel.seconds
        assert kernel.bytes_per_second == kernel.moved / kernel.seconds
        binding = max(kernel.flops / 100e9, kernel.moved / 10e9)
        assert profile.limit_share(kernel) == pytest.approx(binding / kernel.seconds)


def test_table(profile, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    lines = str(profile).splitlines()
    assert lines[0].strip() == "profile: f32[5, 33]"
    assert lines[2].split()[:4] == ["kind", "kernel", "×", "lines"]
    assert sum("contraction" in line for line in lines) == 2
    (total,) = (line.split() for line in lines if line.split()[:1] == ["total"])
    assert int(total[1]) == len(profile.kernels)
    assert float(total[2]) == pytest.approx(profile.seconds * 1e6, abs=0.051)
    text = " ".join(str(profile).split())
    assert "Medians of 4 calls; the limit is 100 GFLOP/s or 10.0 GB/s from memory" in text


def test_trace(profile, tmp_path):
    profile.chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    program, *kernels = (event for event in events if event["ph"] == "X")
    assert [event["name"] for event in kernels] == [each.kernel for each in profile.kernels]
    assert len({(event["pid"], event["tid"]) for event in (program, *kernels)}) == 1
    rounding = 1e-6
    end = program["ts"]
    for event, kernel in zip(kernels, profile.kernels):
        assert event["ts"] >= end - rounding and event["dur"] >= 0
        end = event["ts"] + event["dur"]
        assert event["args"]["flops"] == kernel.flops and event["args"]["bytes"] == kernel.moved
        assert event["args"]["schedule"] == kernel.schedule
        assert event["args"]["lines"].startswith("test_profile.py:")
    assert end <= program["ts"] + program["dur"] + rounding
    assert program["dur"] == pytest.approx(profile.least * 1e6)


def test_calls_are_like_others():
    counter = torch.zeros(3)
    compiled = weft.compile(lambda x, y: x.add_(y))
    profile = compiled.profile(counter, torch.ones(3), repeats=2)
    assert counter.tolist() == [3.0, 3.0, 3.0]  # one call that is not counted, and two
    compiled(counter, y=torch.ones(3))
    assert len(profile.kernels[0].samples) == 2
    assert compiled.profile(counter, y=torch.ones(3), repeats=1).repeats == 1


def test_a_program_without_kernels(tmp_path, peaks):
    profile = weft.compile(lambda x: x).profile(torch.ones(3))
    assert profile.kernels == () and profile.seconds == 0.0
    assert "total" in str(profile)
    profile.chrome_trace(tmp_path / "trace.json")


def test_calls_that_pytorch_runs_have_no_profile():
    with pytest.raises(weft.errors.Error, match="PyTorch runs this call: .*test_profile.py"):
        weft.compile(lambda x: x[: int(x.sum())], capture="export").profile(torch.ones(3))
    with pytest.raises(weft.errors.ConfigError, match="at least 1, found 0"):
        weft.compile(Block()).profile(torch.ones(5, 33), repeats=0)


def test_peaks_are_positive():
    assert _core.measure_peak_flops(1) > 0
    assert _core.measure_peak_bandwidth(1) > 0
    assert _core.measure_line_transfer() >= 0  # one processor has nobody to give a line to
