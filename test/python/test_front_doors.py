# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The other ways in: exported programs, torch.compile, artifacts alone; and looking inside."""

import io

import pytest
import torch
from counting import programs

import weft

pytestmark = pytest.mark.usefixtures("no_grad")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x, scale=1.0):
        return {"y": self.linear(x) * scale, "x": x}


def test_exported_program(compiled_only):
    model = Model()
    x = torch.randn(2, 4)
    exported = torch.export.export(model, (x,), {"scale": 2.0})
    compiled = weft.from_exported_program(exported)
    for _ in range(2):
        result = compiled(x, scale=2.0)
        assert result["x"] is x
        torch.testing.assert_close(result["y"], model(x, 2.0)["y"])
        model.linear.weight.add_(1)
    assert programs(compiled) == 1


def test_exported_program_called_otherwise():
    exported = torch.export.export(Model(), (torch.randn(2, 4),))
    compiled = weft.from_exported_program(exported)
    with pytest.raises(Exception, match="Guard failed|shape"):
        compiled(torch.randn(3, 4))
    assert "exported for another" in " ".join(compiled.eager_reasons)
    with pytest.raises(TypeError, match="ExportedProgram"):
        weft.from_exported_program(Model())


def test_backend_of_torch_compile(compiled_only):
    from weft.dynamo import backend

    model = Model()
    compiled = torch.compile(model, backend=backend)
    for batch in (2, 3, 2):
        x = torch.randn(batch, 4)
        torch.testing.assert_close(compiled(x, 3.0)["y"], model(x, 3.0)["y"])
    torch._dynamo.reset()


@pytest.fixture
def loaded():
    compiled = weft.compile(lambda x, n: x * 2 + n)
    compiled(torch.ones(2, 3), torch.ones(3, dtype=torch.int64))
    return weft.load(compiled.artifact_path)


def test_loaded_artifact(loaded):
    x, n = torch.randn(2, 3), torch.arange(3)
    names = [spec["name"] for spec in loaded.signature]
    (result,) = loaded(x, n)
    torch.testing.assert_close(result, x * 2 + n)
    (result,) = loaded(x, **{names[1]: n})
    torch.testing.assert_close(result, x * 2 + n)
    strided = torch.randn(3, 2).t()
    torch.testing.assert_close(loaded(strided, n)[0], strided * 2 + n)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (torch.ones(2, 4), r"expected shape \[2, 3\], found \[2, 4\]"),
        (torch.ones(2, 3, dtype=torch.float64), "expected dtype f32, found f64"),
        (torch.ones(2, 3, dtype=torch.complex64), "expected dtype f32, found torch.complex64"),
        (torch.ones(2, 3, device="meta"), "expected a tensor on device cpu, found device meta"),
        (torch.ones(2, 3).to_sparse(), "expected layout torch.strided, found torch.sparse_coo"),
        ([[1.0]], "expected a torch.Tensor, found list"),
    ],
)
def test_loaded_artifact_refuses(loaded, first, message):
    n = torch.arange(3)
    with pytest.raises(weft.errors.ArgumentError, match=message):
        loaded(first, n)
    x = torch.ones(2, 3)
    torch.testing.assert_close(loaded(x, n)[0], x * 2 + n)


def test_loaded_artifact_counts_its_arguments(loaded):
    with pytest.raises(weft.errors.ArgumentError, match="expected 2 arguments .* found 1"):
        loaded(torch.ones(2, 3))
    with pytest.raises(weft.errors.ArgumentError, match="found 'bogus'"):
        loaded(torch.ones(2, 3), bogus=torch.arange(3))


def test_file_that_is_no_artifact(tmp_path):
    path = tmp_path / "nothing.so"
    with pytest.raises(weft.errors.ArtifactError, match="nothing.so"):
        weft.load(path)
    path.write_bytes(b"\x7fELF and so on")
    with pytest.raises(weft.errors.ArtifactError, match="nothing.so"):
        weft.load(path)


def test_report(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    compiled = weft.compile(Model(), capture="export")
    text = io.StringIO()
    compiled.report(text)
    assert "not called yet" in text.getvalue()
    compiled(torch.randn(2, 4))
    with pytest.warns(weft.errors.WeftWarning):
        compiled(torch.randn(2, 4).to_sparse())
    text = io.StringIO()
    compiled.report(text)
    assert "f32[2, 4]" in text.getvalue()
    assert "test_front_doors.py" in text.getvalue()
    assert "torch.sparse_coo" in text.getvalue()


def test_report_and_ir_of_training():
    compiled = weft.compile(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh()))
    x = torch.randn(2, 4, requires_grad=True)
    with torch.enable_grad():
        gradient = torch.autograd.grad(compiled(x).sum(), x, create_graph=True)
    assert gradient[0].requires_grad
    text = io.StringIO()
    weft.report(compiled, text)
    for expected in ("backward", "f32[2, 8]", "64 bytes"):
        assert expected in text.getvalue()
    for stage, parts in {
        "joint": ["gradient 0", "weft.dot_general"],
        "partitioned": ["@forward", "@backward"],
        "optimized": ["@main"],
    }.items():
        found = weft.ir(compiled, stage)
        assert all(part in found for part in parts), found
    assert "gradient 0" in weft.ir(compiled, "optimized", role="backward")
    assert compiled.graph("joint") == weft.ir(compiled, "joint")
    forward, backward = compiled.graph("forward"), weft.graph(compiled, "backward")
    assert "gradient 0" in backward and "gradient 0" not in forward
    assert "@forward" in forward and "@backward" not in forward
    plain = weft.compile(torch.neg)
    plain(x.detach())
    assert "weft.neg" in plain.graph()
    with pytest.raises(weft.errors.Error, match="has no backward"):
        weft.ir(plain, role="backward")
    with pytest.raises(weft.errors.Error, match="has no gradients"):
        plain.graph("backward")
    with pytest.raises(weft.errors.ConfigError, match="expected one of joint, forward, backward"):
        plain.graph("sideways")


class Repeated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = torch.special.erfcx(layer(x).exp() + 1)
        return x


def test_report_of_kernels_and_fallbacks(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    compiled = weft.compile(Repeated())
    for _ in range(3):
        compiled(torch.randn(64, 64))
    text = io.StringIO()
    compiled.report(text)
    lines = text.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines if "artifact:" not in line) <= 120
    row = next(line.split() for line in lines if "contraction" in line)
    assert row[2] == "3"  # the layers' kernel, once
    assert row[4] == f"{3 * 2 * 64**3 / 1e9:.3f}"
    number = Repeated.forward.__code__.co_firstlineno + 2
    (fallback,) = {line for line in lines if "dispatcher" in line}
    assert "aten.special_erfcx.default" in fallback and f"test_front_doors.py:{number}" in fallback
    assert "compiled, seconds: capture" in text.getvalue()
    assert " object " in text.getvalue()


def test_nothing_inside_before_the_first_call():
    with pytest.raises(weft.errors.Error, match="nothing has been compiled"):
        weft.compile(Model()).ir()
