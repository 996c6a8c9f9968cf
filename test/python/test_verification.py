# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program is published only after it has reproduced eager execution."""

import warnings

import pytest
import torch

import weft
import weft.frontend.ops  # noqa: F401 (fills the table)
from weft import errors
from weft.compiled.distances import Exact, as_exact, example_of, is_near
from weft.frontend.random_rounding import Spread
from weft.frontend.table import TABLE

pytestmark = pytest.mark.usefixtures("no_grad", "verified")

nn = torch.nn


@pytest.fixture
def wrong_tanh(monkeypatch):
    """The frontend takes tanh for a sine."""
    monkeypatch.setitem(TABLE, "aten.tanh.default", lambda site, x: site.builder.unary("sin", x))


def outcome_of_three(function, *args):
    compiled = weft.compile(function)
    return [compiled(*args) for _ in range(3)], compiled.stats()


def test_the_first_call_is_eager_and_the_next_is_not():
    ran = []

    class Model(nn.Module):
        def forward(self, x):
            ran.append(type(x))
            return x * 2

    model = Model()
    compiled = weft.compile(lambda x: (x * 3 + 1) / 2 + 1)  # which no other test has checked
    for expected in ((1, 0, 1), (1, 1, 1), (1, 2, 1)):
        assert compiled(torch.ones(3)).tolist() == [3, 3, 3]
        stats = compiled.stats()
        assert (stats["graphs"], stats["hits"], stats["misses"]) == expected
    assert stats["breaks"] == [] and stats["captures"] == 1
    assert min(stats[f"{kind}_seconds"] for kind in ("capture", "compile", "verify")) > 0
    assert {"capture", "lower", "build"} <= set(compiled.compile_seconds)
    del model


def test_a_program_that_differs_is_kept_away(wrong_tanh, monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_DUMP", str(tmp_path))

    def function(x):
        y = x.exp()
        return y.tanh() + x

    x = torch.randn(7, 5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results, stats = outcome_of_three(function, x)
    assert all(torch.equal(result, function(x)) for result in results)
    (reason,) = stats["breaks"]
    assert "does not reproduce eager execution" in reason and "first in aten.tanh" in reason
    assert "test_verification.py" in reason
    assert stats["graphs"] == stats["hits"] == 0
    assert len(caught) == 1 and "test_verification.py" in caught[0].filename
    assert "aten.tanh" in (tmp_path / "difference.txt").read_text()


@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
def test_the_op_is_named_though_its_arguments_are_written_later(wrong_tanh):
    def function(x, count):
        y = x.exp()
        z = y.tanh() * count
        y.mul_(0.5)
        return z, y

    _, stats = outcome_of_three(function, torch.randn(7, 5), torch.tensor(3))
    (reason,) = stats["breaks"]
    assert "first in aten.tanh" in reason


def test_rounding_of_a_narrower_type_is_no_difference():
    """Of float64 results the last bits are compared, unless bfloat16 has rounded them before."""

    def function(x):
        return torch.log_softmax(x, -1).double()

    x = torch.randn(512, 100).bfloat16()
    _, stats = outcome_of_three(function, x)
    assert not stats["breaks"] and stats["hits"] == 2


def test_fullgraph_raises_for_a_program_that_differs(wrong_tanh):
    compiled = weft.compile(lambda x: x.tanh() - 3, fullgraph=True)
    with pytest.raises(errors.NotCompiledError, match="does not reproduce"):
        compiled(torch.ones(3))


def test_results_are_remembered_beside_the_artifact():
    def function(x):
        return (x * 3).t()

    x = torch.randn(4, 6)
    first, second = weft.compile(function), weft.compile(function)
    first(x)
    assert first.stats()["hits"] == 0
    assert second(x).stride() == function(x).stride()
    assert second.stats()["hits"] == 1


def test_results_lie_where_eager_execution_has_them():
    functions = [
        lambda x: (x * 2)[:, -1],
        lambda x: (x + 1)[1:, 2:].t(),
        lambda x: [(x * 3)[..., 1], x.exp()],
    ]
    x = torch.randn(4, 6)
    for function in functions:
        for compiled in (weft.compile(function), weft.compile(function)):
            for _ in range(3):
                found, expected = compiled(x), function(x)
                if isinstance(found, torch.Tensor):
                    found, expected = [found], [expected]
                for own, eager in zip(found, expected, strict=True):
                    torch.testing.assert_close(own, eager)
                    assert own.stride() == eager.stride()
                    assert own.storage_offset() == eager.storage_offset()
            assert not compiled.stats()["breaks"]


def test_always_returns_what_pytorch_computes(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "always")
    calls = []
    function = torch.compiler.disable(lambda x: x.sin())
    compiled = weft.compile(nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
    x = torch.ones(2, 4)
    results = [compiled(x) for _ in range(3)]
    assert all(torch.equal(result, compiled.original(x)) for result in results)
    assert compiled.stats()["hits"] == 0 and compiled.stats()["graphs"] == 1
    del calls, function


def test_settings_are_checked():
    with pytest.raises(errors.ConfigError, match="verify among"):
        weft.config.verify = "sometimes"
    with pytest.raises(errors.ConfigError, match="setting among"):
        weft.config.verfy = "first"


def test_writes_are_compared():
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("steps", torch.zeros(3))

        def forward(self, x, out):
            self.steps.add_(1)
            out.mul_(2)
            return x + self.steps

    model, out = Counting(), torch.ones(3)
    compiled = weft.compile(model)
    for step in range(1, 5):
        assert compiled(torch.zeros(3), out).tolist() == [step] * 3
        assert out.tolist() == [2.0**step] * 3
    assert compiled.stats()["hits"] == 3


def test_random_numbers_are_those_of_eager_execution():
    layer = nn.Dropout(0.5).train()
    compiled = weft.compile(layer)
    for seed in range(3):
        torch.manual_seed(seed)
        expected, after = layer(torch.ones(50)), torch.get_rng_state()
        torch.manual_seed(seed)
        assert torch.equal(compiled(torch.ones(50)), expected)
        assert torch.equal(torch.get_rng_state(), after)


def test_telling_where_a_program_differs_draws_nothing(wrong_tanh):
    def function(x):
        return torch.nn.functional.dropout(x.tanh(), 0.5)

    torch.manual_seed(0)
    expected, after = function(torch.ones(9)), torch.get_rng_state()
    torch.manual_seed(0)
    with pytest.warns(errors.WeftWarning, match="first in aten.tanh.default"):
        assert torch.equal(weft.compile(function)(torch.ones(9)), expected)
    assert torch.equal(torch.get_rng_state(), after)


def test_what_is_left_of_a_sum_of_zero_is_no_difference():
    """The mean of what a batch norm gives, mixed without a bias, as in inverted bottlenecks."""
    layers = nn.BatchNorm1d(6), nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8)
    model = nn.Sequential(*layers).train()
    compiled = weft.compile(model)
    for _ in range(3):
        compiled(torch.randn(7, 6))
    assert compiled.stats()["hits"] == 2 and compiled.stats()["breaks"] == []
    assert 0 < layers[2].running_mean.abs().max() < 1e-6


def test_rounding_of_sums_excuses_neither_what_it_is_not_nor_what_has_grown():
    def excuses(value, rounded, eager, own, added_up=1.0):
        exact = torch.tensor([value], dtype=torch.float64)
        result = Exact(exact, torch.tensor([rounded]), 1.0, added_up, 2.0**-23)
        return result.excuses(torch.tensor([eager]), torch.tensor([own]))

    assert excuses(0.0, 3e-8, 2e-8, -4e-8)
    assert not excuses(0.0, 3e-8, 2e-8, -4e-8, added_up=1e-3)
    assert not excuses(0.0, 3e-8, 2e-8, -4e-7)  # a number of its own
    assert not excuses(0.0, 3e-3, 2e-3, -4e-3, added_up=1e5)


def test_what_random_rounding_makes_of_a_sum_that_cancels_is_excused():
    """One computation of it may happen to have small errors, as of a mean of few elements."""

    def excuses(eager, own, spread, added_up=1.0):
        value = torch.zeros(2, dtype=torch.float64)
        found = Spread(value.float(), torch.tensor([spread, 0.0]), most=0.0)
        result = Exact(value, torch.full((2,), 1e-9), 1.0, added_up, 2.0**-23, lambda: found)
        return result.excuses(torch.tensor([eager, 1e-9]), torch.tensor([own, -1e-9]))

    assert excuses(6e-9, -7e-9, spread=1e-9)
    assert excuses(-7e-9, 3e-9, spread=1e-9)
    assert not excuses(6e-9, -9e-9, spread=1e-9)
    assert not excuses(9e-9, -6e-9, spread=1e-9)
    assert not excuses(6e-9, -7e-9, spread=5e-10)
    assert not excuses(6e-9, -7e-9, spread=1e-9, added_up=6e-3)  # larger than its last bits
    assert not excuses(6e-9, float("nan"), spread=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_what_underflows_may_lose_its_last_bits(dtype):
    """As in a deep net of small weights: a sum of what underflows depends on its order."""
    smallest = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    eager = torch.tensor([-1.0, 2.0], dtype=torch.float64).mul(smallest).to(dtype)
    assert eager[0] != 0 and is_near(eager, torch.zeros(2, dtype=dtype), 2e-5)
    kept = torch.full((2,), torch.finfo(dtype).smallest_normal / 2, dtype=dtype)
    assert not is_near(kept, torch.zeros(2, dtype=dtype), 2e-5)  # flushed


def test_large_tensors_are_compared_to_their_end():
    eager = torch.full((200, 300), 1000.0)
    eager[0, 0], eager[-1, -2], eager[-1, -1] = torch.inf, torch.nan, 0.0
    own = eager.clone()
    own[-1, -1] = 0.01  # in the last part, where the mean of all decides
    assert is_near(eager, own, 2e-5) and not is_near(eager, own, 2e-6)
    assert is_near(eager.T, own.T, 2e-5)
    for place in ((0, 0), (-1, -2), (-1, -1)):
        wrong = own.clone()
        wrong[place] = 1.0
        assert not is_near(eager, wrong, 2e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.int64, torch.bool])
def test_the_largest_difference_is_named(dtype):
    eager = torch.tensor([[1.0, 2.0], [0.0, 5.0]])
    own = torch.tensor([[1.0 + 1e-6, 2.0], [3.0, 5.5]])
    example = example_of(eager.to(dtype), own.to(dtype))
    numbers = [str(each.to(dtype)[1, 0].item()) for each in (own, eager)]
    assert example == f"{numbers[0]} instead of {numbers[1]} at 2 of 4"


def test_what_is_no_number_is_named():
    nan, inf = float("nan"), float("inf")
    eager, own = torch.tensor([nan, inf, 1.0, 2.0]), torch.tensor([nan, inf, 8.0, nan])
    assert example_of(eager, own) == "nan instead of 2.0 at 3 of 4"


def test_an_error_of_the_first_call_is_the_users():
    def function(x, i):
        return x[i] * 2

    compiled, x = weft.compile(function), torch.arange(3.0)
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([0, 7]))
    for _ in range(2):
        assert compiled(x, torch.tensor([0, 2])).tolist() == [0, 4]
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([0, 7]))
    assert compiled.stats()["hits"] >= 1


def test_other_weights_need_no_other_program():
    model, x = nn.Linear(8, 8), torch.randn(3, 8)
    compiled = weft.compile(model)
    compiled(x)
    for _ in range(3):
        state = {name: torch.randn_like(value) for name, value in model.state_dict().items()}
        model.load_state_dict(state, assign=True)
        torch.testing.assert_close(compiled(x), model(x))
    assert compiled.stats()["captures"] == 1 and compiled.stats()["hits"] == 3


def test_a_state_that_comes_back_is_found_again():
    model, x = nn.Linear(4, 4), torch.ones(2, 4)
    compiled = weft.compile(model, capture="export")
    compiled(x), compiled(x)
    for _ in range(3):
        handle = model.register_forward_hook(lambda module, args, result: result * 2)
        assert torch.equal(compiled(x), model(x))
        handle.remove()
        torch.testing.assert_close(compiled(x), model(x))
    stats = compiled.stats()  # the second of the same hooks is captured
    assert stats["captures"] == 2 and stats["misses"] <= 5


def test_hooks_that_come_and_go_cost_no_program():
    model, x = nn.Linear(4, 4), torch.ones(2, 4)
    compiled = weft.compile(model, capture="export")
    compiled(x), compiled(x)
    for step in range(4):
        handle = model.register_forward_hook(lambda module, args, out, step=step: out + step)
        assert torch.equal(compiled(x), model(x))
        handle.remove()
    assert compiled.stats()["captures"] == 1 and not compiled.stats()["breaks"]


def test_layouts_of_nothing():
    """They are eager's, also of a result that shows another one."""

    def function(x):
        zero = x == 0
        return zero.unsqueeze(3), zero

    x = torch.zeros(4).as_strided((2, 2, 0, 0), (2, 1, 1, 2))
    compiled = weft.compile(function)
    for _ in range(2):
        for each, other in zip(compiled(x), function(x), strict=True):
            assert each.stride() == other.stride()
    assert compiled.stats()["breaks"] == []


def test_infinities_may_be_float64s():
    """PyTorch's vectorized gelu makes a NaN of infinity."""
    nan, inf = float("nan"), float("inf")
    eager = torch.tensor([nan, 1.0, -inf])
    exact = torch.tensor([inf, 1.0, -inf], dtype=torch.float64)
    assert as_exact(eager, torch.tensor([inf, 1.0, -inf]), exact, 1e-5)
    assert as_exact(eager, eager.clone(), exact, 1e-5)
    assert not as_exact(eager, torch.tensor([-inf, 1.0, -inf]), exact, 1e-5)
    assert not as_exact(eager, torch.tensor([2.0, 1.0, -inf]), exact, 1e-5)
    assert not as_exact(eager, torch.tensor([nan, nan, -inf]), exact, 1e-5)
    exact[0] = 2.0  # where eager execution alone is not finite, so must the program be
    assert not as_exact(eager, torch.tensor([2.0, 1.0, -inf]), exact, 1e-5)


def test_gelu_of_infinity_is_compiled():
    compiled = weft.compile(torch.nn.functional.gelu)
    compiled(torch.full((16,), float("inf")))
    assert weft.stats(compiled)["graphs"] == 1 and not weft.stats(compiled)["breaks"]


def test_a_result_that_requires_gradients_of_its_own():
    """Nothing else of the call does."""

    def f(x):
        start = x.clone().detach().requires_grad_()
        return start.abs().sqrt(), start

    compiled = weft.compile(f)
    for rows in (3, 4, 5, 5, 4):
        with torch.enable_grad():
            root, start = compiled(torch.randn(rows))
            root.sum().backward()
        assert start.grad is not None


def test_calls_that_change_what_no_trace_sees_are_given_up_with_a_reason():
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            self.weight.calls = getattr(self.weight, "calls", 0) + 1
            return x * self.weight

    model = Counting()
    compiled = weft.compile(model)
    for number in range(6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.WeftWarning)
            assert compiled(torch.ones(2)).tolist() == [1, 1]
        assert model.weight.calls == number + 1
    assert weft.stats(compiled)["breaks"] and weft.stats(compiled)["captures"] <= 6


@torch.enable_grad()
def test_a_loader_of_data_leaves_the_random_state_of_eager_execution():
    layer, data = nn.Linear(3, 2), torch.arange(24.0).view(8, 3)
    dataset = torch.utils.data.TensorDataset(data, data[:, :2])
    batches = torch.utils.data.DataLoader(dataset, batch_size=4)

    @torch.no_grad()
    def function(x):
        total = 0.0
        for inputs, targets in batches:  # draws a seed, and drops it
            total = total + ((layer(inputs) - targets) ** 2).mean()
        return total + x.sum()

    compiled = weft.compile(function)
    for seed in range(4):
        states = []
        for each in (function, compiled):
            torch.manual_seed(seed)
            each(torch.ones(3))
            states.append(torch.get_rng_state())
        assert torch.equal(*states)
