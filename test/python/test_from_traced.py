# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.from_traced` and `weft.from_pt2`: names, dtypes, live weights, what PyTorch runs."""

import pytest
import torch

import weft
from weft import errors

nn = torch.nn
pytestmark = pytest.mark.usefixtures("no_grad")


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.norm = nn.BatchNorm1d(8)
        self.out = nn.Linear(8, 4)
        self.register_buffer("shift", torch.arange(4.0))

    def forward(self, ids, x):
        hidden = self.norm((self.words(ids) + x).transpose(1, 2)).transpose(1, 2)
        return self.out(nn.functional.gelu(hidden)).softmax(-1) + self.shift, hidden.mean()


IDS, X = torch.arange(10).reshape(2, 5), torch.linspace(-1, 1, 80).reshape(2, 5, 8)
ENTRIES = [("ids", ((2, 5), "int64")), ("x", ((2, 5, 8), torch.float32))]


@pytest.fixture
def traced():
    return torch.jit.trace(Encoder().eval(), (IDS, X))


def is_compiled(program):
    found = weft.stats(program)
    return found["graphs"] > 0 and not found["breaks"]


def test_equals_the_traced_module(traced):
    program = weft.from_traced(traced, ENTRIES)
    for _ in range(2):
        torch.testing.assert_close(program(IDS, X), traced(IDS, X))
    torch.testing.assert_close(program(x=X, ids=IDS), traced(IDS, X))
    assert is_compiled(program) and program.module is traced
    assert program.input_names == ["ids", "x"]
    assert program.output_names == ["output_0", "output_1"]


def test_params_are_live_and_in_torchs_order(traced):
    program = weft.from_traced(traced, ENTRIES)
    buffers = [name for name, _ in traced.named_buffers()]
    assert list(program.params) == [*dict(traced.named_parameters()), *buffers]
    program(IDS, X)
    program.params["out.bias"].add_(1)
    program.params["norm.running_mean"].add_(0.5)
    torch.testing.assert_close(program(IDS, X), traced(IDS, X))
    assert is_compiled(program)


def test_inputs_by_name(traced):
    program = weft.from_traced(traced, ENTRIES)
    program.set_input("ids", IDS)
    program.set_inputs(x=X)
    program.run()
    expected = traced(IDS, X)
    torch.testing.assert_close(program.get_output(0), expected[0])
    torch.testing.assert_close(program.get_output("output_1"), expected[1])


def test_each_input_without_a_dtype_is_warned_of(traced):
    with pytest.warns(errors.WeftWarning) as caught:
        program = weft.from_traced(traced, [("ids", ((2, 5), "int64")), ("x", (2, 5, 8))])
    (warning,) = caught
    assert str(warning.message) == "input 'x' has no dtype: float32 is taken"
    assert warning.filename == __file__
    torch.testing.assert_close(program(IDS, X), traced(IDS, X))
    double = torch.jit.trace(lambda a, b: a + b, (torch.ones(3).double(),) * 2)
    with pytest.warns(errors.WeftWarning) as caught:
        program = weft.from_traced(double, [("a", (3,)), ("b", (3,))], "float64")
    assert len(caught) == 2
    assert program(torch.ones(3).double(), torch.ones(3).double()).dtype == torch.float64


def test_other_shapes_run_the_traced_module(traced):
    program = weft.from_traced(traced, ENTRIES)
    with pytest.warns(errors.WeftWarning, match="exported for another ids"):
        torch.testing.assert_close(program(IDS[:1], X[:1]), traced(IDS[:1], X[:1]))


def test_a_scripted_module():
    scripted = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.GELU()).eval())
    program, x = weft.from_traced(scripted, [("x", ((3, 4), "float32"))]), torch.randn(3, 4)
    torch.testing.assert_close(program(x), scripted(x))
    program.params["0.bias"].add_(1)
    torch.testing.assert_close(program(x), scripted(x))
    assert is_compiled(program)


@torch.jit.script
def scripted_function(a: torch.Tensor, n: torch.Tensor):
    return a * 2 + n, [a, n]


def test_a_scripted_function():
    entries = [("a", ((3,), "float32")), ("n", ((3,), "int64"))]
    program = weft.from_traced(scripted_function, entries)
    a, n = torch.randn(3), torch.arange(3)
    torch.testing.assert_close(program(a, n), scripted_function(a, n))
    assert is_compiled(program) and program.params == {}


class Branches(nn.Module):
    def forward(self, y: torch.Tensor):
        if bool(y.sum() > 0):
            y = y * 2
        return y


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, y: torch.Tensor):
        self.calls += 1
        return y + self.calls


class Prints(nn.Module):
    def forward(self, y: torch.Tensor):
        print("here")
        return y


@pytest.mark.parametrize(
    "kind, reason", [(Branches, ""), (Counts, "it sets attributes"), (Prints, "it prints")]
)
def test_what_cannot_be_compiled_is_run_by_pytorch(kind, reason):
    scripted, twin = torch.jit.script(kind()), kind()
    program = weft.from_traced(scripted, [("y", ((3,), "float32"))])
    with pytest.warns(errors.WeftWarning, match=f"PyTorch runs this call: .*{reason}"):
        for y in (torch.ones(3), -torch.ones(3)):
            assert torch.equal(program(y), twin(y))
    assert weft.stats(program)["graphs"] == 0 and reason in weft.stats(program)["breaks"][0]


def test_fullgraph_refuses_it():
    with pytest.raises(errors.NotCompiledError, match="it prints"):
        weft.from_traced(torch.jit.script(Prints()), [("y", ((3,), "float32"))], fullgraph=True)


def test_hooks_are_run_by_pytorch():
    module = nn.Linear(2, 2)
    module.register_forward_hook(hook)
    scripted = torch.jit.script(module)
    program = weft.from_traced(scripted, [("x", ((1, 2), "float32"))])
    with pytest.warns(errors.WeftWarning, match="it has hooks"):
        assert torch.equal(program(torch.ones(1, 2)), scripted(torch.ones(1, 2)))


def hook(self, x: tuple[torch.Tensor], y: torch.Tensor) -> torch.Tensor:
    return y + 100


@pytest.mark.parametrize(
    "entries, message",
    [
        ([], "expected an entry for each of 2 inputs"),
        ([("ids", (2, 5)), ("ids", (2, 5, 8))], "'ids' twice"),
        ([("ids", (2, 5)), ("x", "float32")], "expected an input as"),
        ([("ids", (2, -5)), ("x", (2, 5, 8))], "expected an input as"),
        ([("ids", ((2, 5), "int65")), ("x", (2, 5, 8))], "name of a dtype of torch, found 'int65'"),
        ([(1, (2, 5)), ("x", (2, 5, 8))], "expected an input as"),
    ],
)
@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
def test_entries_that_make_no_sense(traced, entries, message):
    with pytest.raises(errors.ArgumentError, match=message):
        weft.from_traced(traced, entries)


def test_what_is_not_torchscript():
    with pytest.raises(TypeError, match="expected a TorchScript module, found Encoder"):
        weft.from_traced(Encoder(), ENTRIES)


def test_options(traced):
    weft.from_traced(traced, ENTRIES, threads=1, target="x86-64-v3")
    with pytest.raises(errors.ConfigError):
        weft.from_traced(traced, ENTRIES, target="m68k")


def test_from_pt2(tmp_path):
    module = Encoder().eval()
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(module, (IDS,), {"x": X}), path)
    program = weft.from_pt2(path)
    assert program.input_names == ["ids", "x"]
    torch.testing.assert_close(program(IDS, X), module(IDS, X))
    torch.testing.assert_close(program(x=X, ids=IDS), module(IDS, X))
    program.set_inputs(ids=IDS, x=X)
    program.run()
    torch.testing.assert_close(program.get_output(1), module(IDS, X)[1])
    assert is_compiled(program)
    torch.testing.assert_close(program.params["out.bias"], module.out.bias)


def test_from_pt2_with_containers(tmp_path):
    class Pairs(nn.Module):
        def forward(self, pair, options):
            return {"sum": pair[0] + pair[1], "scaled": pair[0] * options["by"]}

    pair, options = [torch.ones(3), torch.arange(3.0)], {"by": torch.full((3,), 2.0)}
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(Pairs(), (pair, options)), path)
    program = weft.from_pt2(path)
    assert program.input_names == ["arg0", "arg1"]
    torch.testing.assert_close(program(pair, options), Pairs()(pair, options))
    assert is_compiled(program)


def test_from_pt2_of_something_else(tmp_path):
    (tmp_path / "text.pt2").write_text("nothing")
    with pytest.raises(errors.ModelError, match="text.pt2 cannot be loaded"):
        weft.from_pt2(tmp_path / "text.pt2")
    with pytest.raises(OSError):
        weft.from_pt2(tmp_path / "none.pt2")
