# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command `weft`: a user's exported program measured, an artifact inspected."""

import json
import re

import pytest
import torch
from processes import python

import weft
from weft.benchmark.exported import load_exported
from weft.benchmark.measure import exported_in_float64
from weft.cli.main import main

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
    compiled = weft.compile(lambda x: torch.special.erfcx(x @ x).relu() + 1)
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


@pytest.mark.at_length
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


@pytest.mark.at_length
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
    assert "run by PyTorch: aten.special_erfcx.default" in printed
    assert "avx2" in printed.partition("CPU features: ")[2]


def test_inspect_what_is_no_artifact(model, capsys):
    assert main(["inspect", str(model)]) == 1
    assert "model.pt2" in capsys.readouterr().err


FACTORIES = """
import torch

class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x, scale=1.0):
        return {"y": torch.nn.functional.gelu(self.linear(x)) * scale}

def make():
    torch.manual_seed(0)
    return Small().eval(), (torch.ones(2, 8),), {"scale": 2.0}

def alone():
    return Small().eval()

def writes():
    return lambda x: x.add_(1), (torch.zeros(3),)

def prints():
    def program(x):
        print("in the program")
        return x + 1 if id(x) else x  # which is not observed, either
    return program, (torch.ones(3),)

def unfit():
    return Small(), (torch.ones(2, 7),)

def broken():
    raise ValueError("no such thing\\nand more")

def number():
    return 3, (1,)

def four():
    return 1, 2, 3, 4

value = 7
"""


@pytest.fixture
def factories(tmp_path):
    path = tmp_path / "factories.py"
    path.write_text(FACTORIES)
    return path


@pytest.fixture
def onnx_model(tmp_path):
    import onnx
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    relu, reshape = (
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    )
    for name, node, inputs in (("relu", relu, [x]), ("reshape", reshape, [x, shape])):
        graph = helper.make_graph([node], "g", inputs, [y])
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        onnx.save(proto, tmp_path / f"{name}.onnx")
    return tmp_path / "relu.onnx"


def test_compile(factories, tmp_path, capsys):
    output = tmp_path / "small.so"
    assert main(["compile", f"{factories}:make", "-o", str(output)]) == 0
    assert "compiled factories.py:make in " in (printed := capsys.readouterr().out)
    assert str(output) in printed
    assert [each["name"] for each in weft.load(output).signature][-1] == "x"


def test_compile_for_a_target(factories, tmp_path, capsys):
    output = tmp_path / "small.so"
    arguments = ["--target", "x86-64-v3", "--threads", "1", "-o", str(output)]
    assert main(["compile", f"{factories}:make", *arguments]) == 0
    manifest = weft.load(output).manifest
    assert manifest["threads_hint"] == 1 and "avx512f" not in manifest["cpu_features"]


def test_run_prints_stores_and_compares(factories, tmp_path, capsys):
    output = tmp_path / "outputs.pt"
    assert main(["run", f"{factories}:make", "--compare", "--output", str(output)]) == 0
    printed = in_words(capsys)
    assert "['y'] float32 [2, 4]" in printed
    assert float(printed.rpartition("difference from PyTorch: ")[2]) < 1e-6
    assert torch.load(output)["y"].shape == (2, 4)


def test_run_with_inputs(factories, tmp_path, capsys):
    inputs = tmp_path / "inputs.pt"
    for stored in ((torch.zeros(5, 8),), {"x": torch.zeros(5, 8)}):
        torch.save(stored, inputs)
        assert main(["run", f"{factories}:alone", "--inputs", str(inputs)]) == 0
        assert "['y'] float32 [5, 4]" in in_words(capsys)


def test_run_gives_each_call_arguments_of_its_own(factories, capsys):
    assert main(["run", f"{factories}:writes", "--compare"]) == 0
    printed = in_words(capsys)
    assert "0 float32 [3] 1 1 1" in printed and "PyTorch: 0" in printed


def test_run_of_what_pytorch_runs_says_so(factories, capsys):
    assert main(["run", f"{factories}:prints"]) == 0
    captured = capsys.readouterr()
    assert captured.out.count("in the program") in (1, 2)  # warnings may be given once
    assert captured.err.startswith("weft: PyTorch runs this call: the call prints")


def test_run_of_an_exported_and_of_an_onnx_model(model, onnx_model, capsys):
    assert main(["run", str(model)]) == 0
    assert "['best'] int64 [3]" in in_words(capsys)
    assert main(["run", str(onnx_model), "--shape", "x=3x8", "--compare"]) == 0
    assert "[0] float32 [3, 8] 0 " in in_words(capsys)


def test_show(factories, capsys):
    assert main(["show", f"{factories}:make"]) == 0
    assert "weft.gelu" in capsys.readouterr().out
    assert main(["show", f"{factories}:make", "--stage", "llvm"]) == 0
    assert "llvm.func" in capsys.readouterr().out


def test_visualize(factories, tmp_path, capsys):
    path = tmp_path / "picture.svg"
    assert main(["visualize", f"{factories}:make", "-o", str(path), "--stage", "kernels"]) == 0
    assert "<svg" in path.read_text() and "dot_general" in path.read_text()
    assert in_words(capsys).endswith(f"at kernels: {path}")
    assert main(["visualize", f"{factories}:make", "-o", str(tmp_path / "picture.gif")]) == 1
    assert "ends in .svg, .png or .dot" in capsys.readouterr().err


def test_bisect(factories, capsys, monkeypatch):
    assert main(["bisect", f"{factories}:make"]) == 0
    assert capsys.readouterr().out == "no pass differs\n"
    # By this tolerance rounding counts as a difference.
    assert main(["bisect", f"{factories}:make", "--tolerance", "1e-12"]) == 1
    assert "(error " in capsys.readouterr().out


def test_explain(factories, capsys):
    assert main(["explain", f"{factories}:make"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"dot_general_0: \w+ \w+=\d+ .*µs; over \w+=\d+ ", printed)
    assert main(["explain", f"{factories}:prints"]) == 0
    assert "run by PyTorch" in (printed := in_words(capsys)) and "the call prints" in printed


@pytest.mark.at_length
def test_bench_of_an_onnx_model(onnx_model, tmp_path):
    options = ["--systems", "weft", "--rounds", "1", "--seconds", "0", "--threads", "1"]
    output = tmp_path / "results.json"
    options += ["--shape", "x=3x8", "--json", str(output)]
    assert main(["bench", str(onnx_model), *options]) == 0
    (measured,) = json.loads(output.read_text())["models"]
    assert measured["systems"]["weft"]["seconds"] > 0, measured


def test_failures_are_one_line_each(factories, onnx_model, tmp_path, capsys):
    torch.save((torch.ones(1),) * 3, tmp_path / "three.pt")
    reshape = str(tmp_path / "reshape.onnx")
    cases = {
        ("run", str(tmp_path / "none.onnx")): "none.onnx: No such file",
        ("run", f"{tmp_path}/none.py:make"): "expected a Python file",
        ("run", f"{factories}:nothing"): "expected a factory 'nothing'",
        ("run", f"{factories}:value"): "expected a factory 'value'",
        ("run", f"{factories}:broken"): "ValueError: no such thing (line ",
        ("run", f"{factories}:number"): "a module or function, found int",
        ("run", f"{factories}:four"): "found 4 values",
        ("run", f"{factories}:alone"): "expected --inputs",
        ("run", f"{factories}:unfit"): "the call fails: RuntimeError: mat1 and mat2",
        ("run", f"{factories}:make", "--target", "z80"): "found 'z80'",
        ("run", f"{factories}:make", "--threads", "0"): "threads of at least 1",
        ("compile", f"{factories}:prints"): "is not compiled: the call prints",
        ("show", f"{factories}:prints"): "is not compiled: the call prints",
        ("run", str(onnx_model)): "--shape x=…",
        ("run", str(onnx_model), "--shape", "z=1"): "expected --shape of an input among ['x']",
        ("run", str(onnx_model), "--inputs", str(tmp_path / "three.pt")): "expected inputs ['x']",
        ("run", reshape, "--shape", "x=3x8"): "expected --inputs, as 'shape' is no plain data",
    }
    for arguments, expected in cases.items():
        assert main([*arguments]) == 1, arguments
        captured = capsys.readouterr()
        assert captured.err.startswith("weft: ") and expected in captured.err, captured.err
        assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["frobnicate"], ["run"], ["run", "model.txt"], ["run", "model.py"],
        ["show", "m.onnx", "--stage", "none"], ["run", "m.onnx", "--shape", "x"],
        ["run", "m.onnx", "--shape", "x=2xtwo"], ["run", "m.onnx", "--precision", "fp8"],
    ],
)  # fmt: skip
def test_wrong_command_lines(arguments, capsys):
    assert main(arguments) == 2
    assert "usage: weft" in capsys.readouterr().err


def test_help(capsys):
    assert main(["--help"]) == 0
    assert "compile" in capsys.readouterr().out
    for command in ("compile", "run", "show", "explain", "bench"):
        assert main([command, "--help"]) == 0
        assert "examples:\n  weft " in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"weft {weft.__version__}\n"


def test_a_reader_that_has_seen_enough(factories):
    script = (
        "import os, sys; from weft.cli.main import main; r, w = os.pipe(); os.close(r); "
        "os.dup2(w, 1); sys.stdout = os.fdopen(1, 'w'); "
        "sys.exit(main(['show', sys.argv[1], '--stage', 'llvm']))"
    )
    result = python(script, f"{factories}:make")
    assert result.returncode == 0 and "Traceback" not in result.stderr, result.stderr
