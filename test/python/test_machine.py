# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rates of the machine: measured once, kept beside the programs, or given."""

import json
from dataclasses import replace

import pytest

from weft import _core, errors, machine, te


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("WEFT_MACHINE", raising=False)
    machine._kept.cache_clear()
    yield tmp_path
    machine._kept.cache_clear()


@pytest.fixture
def measured(monkeypatch):
    """The measurements so far, none of which takes any time."""
    calls = []

    def measure(name):
        return lambda threads: calls.append((name, threads)) or 1e9 * (1 + len(calls))

    monkeypatch.setattr(machine, "_MEASURE", {name: measure(name) for name in machine.RATES})
    return calls


def test_each_rate_is_measured_once(folder, measured):
    first = machine.rate("flops", 1)
    machine._kept.cache_clear()  # another process
    assert machine.rate("flops", 1) == first
    assert machine.rate("flops", 2) != first
    machine.rate("l2_bandwidth", 1)
    assert measured == [("flops", 1), ("flops", 2), ("l2_bandwidth", 1)]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", '{"format": 0, "machines": {}}', '{"format": 1, "machines": 3}',
     '{"format": 1, "machines": {"a": 3}}'],
)  # fmt: skip
def test_a_damaged_file_is_written_anew(folder, measured, text):
    (folder / "machine.json").write_text(text)
    rate = machine.rate("flops", 1)
    machine._kept.cache_clear()
    assert machine.rate("flops", 1) == rate
    assert len(measured) == 1


def test_a_folder_that_cannot_be_made_costs_a_measurement(folder, measured, monkeypatch):
    (folder / "file").write_text("")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(folder / "file" / "inside"))
    assert machine.rate("flops", 1) > 0


def test_given_rates_hold(folder, measured, monkeypatch):
    given = folder / "given.json"
    given.write_text(json.dumps({"memory_bandwidth": 2e10}))
    monkeypatch.setenv("WEFT_MACHINE", str(given))
    assert machine.rate("memory_bandwidth", 1) == machine.rate("memory_bandwidth", 64) == 2e10
    machine.rate("flops", 1)
    assert measured == [("flops", 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "expected WEFT_MACHINE to name a JSON file"),
        ('{"speed": 3}', "positive numbers for some of flops"),
        ('{"flops": -1}', "positive numbers for some of flops"),
    ],
)
def test_given_rates_are_checked(folder, monkeypatch, text, message):
    given = folder / "wrong.json"
    given.write_text(text)
    monkeypatch.setenv("WEFT_MACHINE", str(given))
    with pytest.raises(errors.ConfigError, match=message):
        machine.rate("flops", 1)


def test_costs_of_schedules_follow_no_measurement(folder, measured, monkeypatch):
    """Two runs have to choose alike, whatever else the machine does."""
    x = te.placeholder((64, 512), name="x")
    r = te.reduce_axis((0, 512), "r")
    schedule = te.default_schedule(te.compute((64,), lambda i: te.sum(x[i, r], axis=r), "z"))
    assert schedule.predicted_seconds() > 0 and measured == []
    before = schedule.predicted_seconds()
    core = machine.ASSUMED_CORE
    slow = replace(core, cycle_bytes=tuple(each / 1e3 for each in core.cycle_bytes))
    monkeypatch.setattr("weft.te.costs.ASSUMED_CORE", slow)
    assert schedule.predicted_seconds() > before


def test_what_is_measured():
    """No clock decides: caches may be as slow as memory while others use the machine."""
    assert _core.measure_cache_bandwidth(1, 2) >= 0
    assert _core.measure_cache_bandwidth(1, 3) >= 0
    from processor import FLAGS

    assert (_core.measure_matrix_flops(1) > 0) <= ("amx_bf16" in FLAGS)
