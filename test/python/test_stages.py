# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every stage of a real program as text, its dump, and the user's lines all the way down."""

import re

import pytest
import torch
from counting import latest

import weft
from weft.errors import CompileError

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")

STAGES = ["graph", "optimized", "kernels", "linalg", "scheduled", "loops", "llvm"]
OPS = {
    "graph": "weft.softmax",
    "optimized": "weft.reduce",
    "kernels": 'weft.kernel = "contraction"',
    "linalg": "linalg.generic",
    "scheduled": "weft.schedule = #weft.schedule<contraction",
    "loops": "vector.fma",
    "llvm": "llvm.func",
}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(64, 128)
        self.second = torch.nn.Linear(128, 10)

    def forward(self, x):
        x = torch.nn.functional.gelu(self.first(x))
        return self.second(x).softmax(-1)


FIRST = Net.forward.__code__.co_firstlineno + 1


@pytest.fixture(scope="module")
def net():
    with torch.no_grad():
        compiled = weft.compile(Net())
        compiled(torch.randn(64, 64))
    return compiled


@pytest.mark.parametrize("stage", STAGES)
def test_ir(net, stage):
    text = net.ir(stage)
    assert OPS[stage] in text
    assert re.search(rf'test_stages\.py":{FIRST}:', text)
    assert re.search(rf'test_stages\.py":{FIRST + 1}:', text)


def test_a_stage_that_is_not_there(net):
    with pytest.raises(CompileError, match="expected stage to be one of: graph, .*found 'bogus'"):
        net.ir("bogus")


def test_kernels_have_their_lines(net):
    calls = latest(net).manifest["entries"]["main"]["calls"]
    lines = [sorted(line for _, line, _ in call["locs"]) for call in calls]
    matmuls = [found for call, found in zip(calls, lines) if call["kind"] == "contraction"]
    assert matmuls == [[FIRST], [FIRST + 1]]
    assert all(lines)


def test_dump(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_DUMP", str(tmp_path / "dump"))
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    weft.compile(Net())(torch.randn(3, 64))
    names = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert names == [f"{number:02}-{stage}.mlir" for number, stage in enumerate(STAGES)]
    for path, stage in zip(sorted((tmp_path / "dump").iterdir()), STAGES):
        assert OPS[stage].split()[0] in path.read_text()


def test_a_dump_folder_that_cannot_be_made_is_named(net, tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("WEFT_DUMP", str(file / "dump"))
    with pytest.raises(CompileError, match=f"WEFT_DUMP file '{file}"):
        net.ir("llvm")


def test_an_artifact_alone():
    model = Net()
    compiled = weft.compile(model)
    x = torch.randn(64, 64)
    expected = compiled(x)
    loaded = weft.load(compiled.artifact_path)
    kinds = {spec["name"]: spec["kind"] for spec in loaded.signature}
    arguments = {
        name: x if kind == "input" else model.get_parameter(name) for name, kind in kinds.items()
    }
    assert sorted(kinds.values()) == ["input"] + ["weight"] * 4
    torch.testing.assert_close(loaded(**arguments)[0], expected, rtol=0, atol=0)
    model.first.weight.mul_(2)
    torch.testing.assert_close(loaded(**arguments)[0], model(x), atol=1e-6, rtol=1e-5)
    with pytest.raises(weft.errors.ArgumentError, match="expected shape"):
        loaded(**{**arguments, next(n for n, k in kinds.items() if k == "weight"): x})
