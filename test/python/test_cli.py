# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command `weft`: a user's exported program measured, an artifact inspected."""

import json

import pytest
import torch

import weft
from weft.benchmark.exported import load_exported
from weft.benchmark.measure import exported_in_float64
from weft.cli import main

nn = torch.nn
pytestmark = pytest.mark.usefixtures("no_grad")


class Program(nn.Module):
    """Makes float32 of its own, as a graph in float64 must not."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(17, 5)
        self.register_buffer("offset", torch.randn(5))
        self.scale = torch.full((5,), 1 / 3)

    def forward(self, x, shift=None):
        y = self.linear(x) * self.scale + self.offset + torch.arange(5, dtype=torch.float32) / 3
        y = y if shift is None else y + shift
        return {"y": y.to(torch.float32).softmax(-1), "best": y.argmax(-1)}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(Program(), (torch.randn(3, 17),)), path)
    return path


@pytest.fixture
def artifact():
    compiled = weft.compile(lambda x: torch.special.digamma(x @ x).relu() + 1)
    compiled(torch.ones(6, 6))
    return compiled.artifact_path


def in_words(capsys) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_float64_of_an_exported_program():
    module, x = Program(), torch.randn(3, 17)
    (found,) = exported_in_float64(torch.export.export(module, (x,)), (x,), {})
    exact = nn.functional.linear(
        x.double(), module.linear.weight.double(), module.linear.bias.double()
    )
    exact = exact * module.scale.double() + module.offset.double()
    exact = (exact + torch.arange(5, dtype=torch.float64) / 3).softmax(-1)
    assert found.dtype == torch.float64
    assert (found - exact).abs().max() < 1e-14


def test_bench(model, tmp_path, capsys):
    results = tmp_path / "results.json"
    systems = ["eager", "weft", "weft-bf16"]
    options = ["--systems", *systems, "--rounds", "1", "--seconds", "0", "--threads", "1"]
    assert main(["bench", str(model), *options, "--json", str(results)]) == 0
    printed = in_words(capsys)
    assert "model.pt2" in printed and "largest error against float64" in printed
    assert "not measured:" not in printed
    (measured,) = json.loads(results.read_text())["models"]
    assert list(measured["systems"]) == systems
    assert measured["reference_failed"] is None and measured["flops"] == 2 * 3 * 17 * 5
    for name, system in measured["systems"].items():
        assert system["seconds"] > 0
        assert (1e-6 < system["error"] < 1e-2) if name == "weft-bf16" else system["error"] < 1e-6


def test_a_program_that_float64_does_not_fit_is_measured(tmp_path, capsys):
    class Bits(nn.Module):
        def forward(self, x):
            return x.view(torch.int32) + torch.ones(3, 3, dtype=torch.int32), x * 2

    path = tmp_path / "bits.pt2"
    torch.export.save(torch.export.export(Bits(), (torch.ones(3, 3),)), path)
    options = ["--systems", "eager", "--rounds", "1", "--seconds", "0", "--threads", "1"]
    assert main(["bench", str(path), *options, "--json", str(tmp_path / "out.json")]) == 0
    (measured,) = json.loads((tmp_path / "out.json").read_text())["models"]
    assert measured["systems"]["eager"]["seconds"] > 0
    assert measured["systems"]["eager"]["error"] is None
    assert "bits.pt2: no errors: not to be had in float64" in in_words(capsys)


def test_inputs_from_a_file(tmp_path):
    model, inputs = tmp_path / "model.pt2", tmp_path / "inputs.pt"
    x, shift, module = torch.randn(3, 17), torch.randn(5), Program()
    for args, kwargs, stored in [
        ((x,), {}, (x + 1,)),
        ((), {"x": x, "shift": shift}, {"x": x + 1, "shift": shift}),
    ]:
        torch.export.save(torch.export.export(module, args, kwargs), model)
        torch.save(stored, inputs)
        case = load_exported(model, inputs)
        found = case.module(*case.args, **case.kwargs)
        expected = module(x + 1, kwargs.get("shift"))
        torch.testing.assert_close(found["y"], expected["y"])


def test_bench_says_what_is_wrong(model, tmp_path, capsys):
    torch.save(3, tmp_path / "three.pt")
    (tmp_path / "text.pt2").write_text("no program")
    cases = {
        ("no.pt2",): "no.pt2",
        (str(tmp_path / "text.pt2"),): "text.pt2 cannot be loaded: ",
        (str(model), "--inputs", str(tmp_path / "three.pt")): "expected a tuple, list or dict",
        (str(model), "--systems", "tvm"): "expected systems among ['eager', 'inductor', ",
        (str(model), "--rounds", "0"): "expected rounds of at least 1, found 0",
    }
    for arguments, expected in cases.items():
        assert main(["bench", *arguments]) == 1
        captured = capsys.readouterr()
        assert captured.err.startswith("weft: ") and expected in captured.err
        assert captured.out == ""


def test_inspect(artifact, capsys):
    assert main(["inspect", str(artifact)]) == 0
    printed = in_words(capsys)
    assert f"{artifact.name}: weft {weft.__version__}" in printed
    assert "x input f32 [6, 6] [6, 1]" in printed
    assert "0 result f32 [6, 6] [6, 1]" in printed
    assert "kernels of @main" in printed and "test_cli.py:" in printed
    assert "run by PyTorch: aten.special_digamma.default" in printed
    assert "avx2" in printed.partition("CPU features: ")[2]


def test_inspect_what_is_no_artifact(model, capsys):
    assert main(["inspect", str(model)]) == 1
    assert "model.pt2" in capsys.readouterr().err
