# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Observed calls whose operations are compiled: by Weft's compiler, or by a given function."""

import pytest
import torch
from torch import nn

import weft
from weft import errors
from weft.observe.graph import _Reader

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


def native(function, **options):
    return weft.compile(function, capture="observe", **options)


def is_native(fast, graphs=1):
    stats = fast.stats()
    return stats["graphs"] == graphs and not stats["breaks"] and not fast.not_compiled


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm, self.factor = nn.Linear(8, 8), nn.BatchNorm1d(8), 2.0

    def forward(self, x, others, *, flag=True):
        y = torch.cat([self.norm(self.layer(x)) * self.factor, *others], dim=1)
        return {"y": y, "first": y[0], "x": x, "flag": flag}


def test_a_module_is_compiled_with_its_buffers_views_and_containers():
    torch.manual_seed(0)
    model, twin = Net(), Net()
    twin.load_state_dict(model.state_dict())
    fast, others = weft.compile(model, capture="observe"), [torch.randn(4, 2), torch.randn(4, 3)]
    with torch.no_grad():
        for _ in range(4):
            x = torch.randn(4, 8)
            result, expected = fast(x, others), twin(x, others)
            torch.testing.assert_close(result["y"], expected["y"])
            assert result["x"] is x and result["flag"] is True
            assert result["first"].data_ptr() == result["y"].data_ptr()
            torch.testing.assert_close(model.norm.running_var, twin.norm.running_var)
            assert model.norm.num_batches_tracked == twin.norm.num_batches_tracked
        assert fast.stats()["graphs"] == 1 and fast.stats()["hits"] == 3
        model.factor = twin.factor = 3.0
        torch.testing.assert_close(fast(x, others)["y"], twin(x, others)["y"])
        for each in (model, twin):
            each.layer.weight.mul_(2)
        torch.testing.assert_close(fast(x, others)["y"], twin(x, others)["y"])


def test_the_result_is_the_compilers():
    """Rounded otherwise: the sum of its products is in another order than PyTorch's."""
    fast = native(lambda x: torch.tanh(x) * 2)
    x = torch.linspace(-3, 3, 1000)
    eager = torch.tanh(x) * 2
    fast(x)
    torch.testing.assert_close(fast(x), eager)
    assert is_native(fast) and fast.stats()["compile_seconds"] > 0


def test_a_number_is_changed_by_tensors():
    def accumulated(x):
        total = 0
        total += x
        scale = 2
        scale *= x
        return total * scale

    fast, x = native(accumulated), torch.ones(3)
    for _ in range(2):
        assert torch.equal(fast(x), accumulated(x))
    assert is_native(fast)


def branch(x):
    y = x * 2
    if y.sum() > 0:
        return y + 1
    return y - 1


def test_a_branch_on_data_is_checked_behind_the_compiled_code():
    fast, x = native(branch), torch.ones(5)
    assert torch.equal(fast(x), branch(x)) and torch.equal(fast(x), branch(x))
    assert is_native(fast)
    assert torch.equal(fast(-x), branch(-x))
    assert fast.stats()["hits"] == 1


def test_what_was_written_is_put_back_where_a_value_came_out_otherwise():
    def f(x):
        x.add_(1)
        return x * 3 if x.sum() > 0 else x * 5

    fast = native(f)
    for start in (1.0, 1.0, -9.0, 1.0):
        x, expected = torch.full((4,), start), torch.full((4,), start)
        assert torch.equal(fast(x), f(expected)) and torch.equal(x, expected)
    assert not fast.not_compiled and fast.stats()["hits"] == 2


def test_a_value_is_compared_as_it_was_ahead_of_later_writes():
    def f(x):
        y = x * 1
        positive = bool(y[0] > 0)
        y.neg_()
        return y + 1 if positive else y - 1

    def g(x):
        y = x * 1
        first = y[:1]
        positive = bool(first)
        y.zero_()
        return y + 1 if positive else y - 1

    for function in (f, g):
        fast = native(function)
        for start in (1.0, 1.0, 0.0, -1.0, 1.0):
            x = torch.full((4,), start)
            assert torch.equal(fast(x), function(x))


def test_an_attribute_is_set_to_what_was_computed():
    class Counting(nn.Module):
        def forward(self, x):
            self.last = x * 2
            return self.last + 1

    model = Counting()
    fast = weft.compile(model, capture="observe")
    for value in (1.0, 2.0, 3.0):
        assert torch.equal(fast(torch.full((2,), value)), torch.full((2,), 2 * value + 1))
        assert torch.equal(model.last, torch.full((2,), 2 * value))
    assert fast.stats()["hits"] >= 1 and not fast.stats()["breaks"]


def test_random_numbers_are_eagers():
    def f(x):
        return torch.nn.functional.dropout(x, 0.5) * 3

    fast, x = native(f), torch.ones(64)
    torch.manual_seed(0)
    expected = [f(x) for _ in range(3)]
    state = torch.get_rng_state()
    torch.manual_seed(0)
    assert all(torch.equal(fast(x), each) for each in expected)
    assert torch.equal(torch.get_rng_state(), state)


def test_gradients():
    torch.manual_seed(0)
    layer = nn.Linear(8, 8)
    fast = native(lambda x: torch.relu(layer(x)).sum())
    x = torch.randn(3, 8)
    torch.relu(layer(x)).sum().backward()
    expected = layer.weight.grad.clone()
    for _ in range(3):
        layer.weight.grad = None
        fast(x).backward()
        torch.testing.assert_close(layer.weight.grad, expected)
    assert is_native(fast)


def test_what_the_compiler_does_not_take_runs_by_pytorchs_own_operations():
    fast, x = native(lambda x: (x * 2).to(torch.complex32)), torch.ones(3)
    for _ in range(3):
        assert torch.equal(fast(x).real, (x * 2).half())
    (reason,) = weft.stats(fast)["replayed"]
    assert "complex32" in reason and "test_observed_compiled.py" in reason
    assert fast.stats()["hits"] >= 1


def test_an_error_of_a_hit_is_the_programs():
    def f(x, index):
        return x[index] * 2

    fast, x = native(f), torch.randn(4)
    fast(x, torch.tensor([0, 3]))
    fast(x, torch.tensor([0, 3]))
    with pytest.raises(IndexError):
        fast(x, torch.tensor([0, 4]))


def test_what_was_written_ahead_of_an_error_is_written_once():
    def f(x, total, index):
        total.add_(1)
        return x[index] * total

    fast, x, total = native(f), torch.randn(4), torch.zeros(1)
    for number, index in enumerate((3, 0, 9, 1, -9, 2)):
        try:
            assert torch.equal(fast(x, total, torch.tensor([index])), x[index : index + 1] * total)
        except IndexError:
            assert index in (9, -9)
        assert total == number + 1


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_another_size_is_served_by_the_same_log(backend):
    def f(x, others):
        y = torch.relu(x @ x.T) + others[0].sum()
        return {"y": y, "other": others[0] * 2}, [y.mean(), 3]

    fast = weft.compile(f, capture="observe", backend=backend)
    with torch.no_grad():
        for size in (3, 3, 5, 5, 1, 0, 3, 1):
            x, others = torch.randn(size, 4), [torch.randn(size + 1)]
            (found, rest), (expected, _) = fast(x, others), f(x, others)
            torch.testing.assert_close(found, expected)
            assert rest[1] == 3 and found["y"].stride() == expected["y"].stride()
    stats = fast.stats()
    assert stats["captures"] == 1 and stats["graphs"] == 4 and stats["hits"] == 4
    assert not stats["breaks"]


def half(x):
    return x[: x.shape[0] // 2]


def flattened(x):
    return x.reshape(-1, x.size(-1)) * x.numel()


def told_by_length(x):
    return x * len(x)


def contiguous(x):
    y = x.T.contiguous()
    y.add_(1)
    return y


def squeezed(x):
    y = x.squeeze()
    return y + y.dim()


def divided(x):
    first, *others = x.split(2)
    return first.sum() + len(others)


def branching_on_size(x):
    return x + 1 if x.nelement() > 12 else x - 1


def summed(x):
    total = 0
    for row in x:
        total = total + row * 2
    return total


SIZED = [half, flattened, told_by_length, contiguous, squeezed, divided, branching_on_size, summed]


@pytest.mark.parametrize("function", SIZED)
def test_what_depends_on_sizes_is_right_at_every_size(function):
    fast = weft.compile(function, backend="eager")
    for size in ((4, 3), (4, 3), (6, 3), (1, 3), (2, 1), (4, 1), (6, 3), (1, 3)):
        x = torch.randn(size)
        expected = function(x.clone())
        found = fast(x)
        assert torch.equal(found, expected) and found.stride() == expected.stride()


def test_a_function_on_a_graph_is_a_backend():
    seen = []

    def backend(module, inputs):
        assert isinstance(module, torch.fx.GraphModule)
        seen.append((module, [each.shape for each in inputs]))
        return module.forward

    fast, x = weft.compile(branch, backend=backend), torch.ones(5)
    for _ in range(3):
        assert torch.equal(fast(x), branch(x))
    ((module, shapes),) = seen
    assert shapes == [(5,)] and fast.stats()["hits"] == 2
    assert [node.op for node in module.graph.nodes].count("placeholder") == 1


def test_a_backend_that_fails_leaves_the_program_to_pytorch():
    def backend(module, inputs):
        raise ValueError("not today")

    fast, x = weft.compile(branch, backend=backend), torch.ones(5)
    for _ in range(3):
        assert torch.equal(fast(x), branch(x))
    assert list(fast.not_compiled) == ["ValueError: not today"] and fast.stats()["hits"] == 2


def test_a_backend_that_computes_something_else_is_not_used():
    def backend(module, inputs):
        return lambda x: (x * 3, torch.tensor(True))

    fast, x = weft.compile(branch, backend=backend), torch.ones(5)
    for _ in range(3):
        assert torch.equal(fast(x), branch(x))
    assert "differs" in str(fast.not_compiled) and fast.stats()["hits"] == 2


def test_an_operation_that_pytorch_runs_is_told_with_the_users_line():
    def f(x):
        y = x * 2
        return torch.linalg.pinv(y)

    fast, x = native(f), torch.randn(3, 3)
    for _ in range(2):
        torch.testing.assert_close(fast(x), f(x))
    told = str(fast._programs[0].compiled.face.explain(x))
    assert f"test_observed_compiled.py:{f.__code__.co_firstlineno + 2}" in told


def test_sizes_that_only_a_kernel_takes_are_not_observed_after_tracing():
    layer, x = nn.LSTM(8, 8, 2, bidirectional=True), torch.randn(5, 2, 8)
    fast = weft.compile(layer)
    with torch.no_grad():
        fast(x)
        layer.bias = False  # its biases are taken for weights
        fast(x), fast(x)
    assert "size mismatch" in weft.stats(fast)["breaks"][0]


def test_unknown_backends_and_captures_are_refused():
    for settings in ({"backend": "fast"}, {"capture": "guess"}):
        with pytest.raises(errors.ConfigError):
            weft.compile(branch, **settings)


def test_lists_from_outside_are_changed_behind_the_compiled_code():
    seen, twin_seen = [], []

    def step(seen, x):
        y = torch.relu(x * 2 + 1)
        seen.append(y)
        return y.exp()

    fast = native(lambda x: step(seen, x))
    with torch.no_grad():
        for number in range(4):
            x = torch.full((3,), float(number))
            torch.testing.assert_close(fast(x), step(twin_seen, x))
    assert is_native(fast) and len(seen) == 4
    torch.testing.assert_close(seen, twin_seen)


def test_what_prints_is_printed_once_a_call(capsys):
    def told(x):
        print("one")
        return x * 2 + 1

    fast = native(told)
    with torch.no_grad():
        for number in range(4):
            assert torch.equal(fast(torch.full((3,), number)), torch.full((3,), number * 2 + 1))
    assert capsys.readouterr().out == "one\n" * 4
    assert is_native(fast)


OF_TWO_FUNCTIONS = {
    "broadcast_tensors": lambda x: torch.broadcast_tensors(x, x[:1])[1] * 2,
    "block_diag": lambda x: torch.block_diag(x, x),
    "cartesian_prod": lambda x: torch.cartesian_prod(x[0], x[1]),
    "cdist": lambda x: torch.cdist(x, x + 1),
    "stft": lambda x: torch.stft(x.flatten(), 8, window=torch.ones(8), return_complex=True).abs(),
    "tensordot": lambda x: torch.tensordot(x, x.T, 1),
}


@pytest.mark.parametrize("name", OF_TWO_FUNCTIONS)
def test_functions_in_c_that_have_a_namesake_in_python(name):
    """Tracing the log finds the operator, not torch's function in Python with other arguments."""
    fast = native(OF_TWO_FUNCTIONS[name])
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(4, 8)
            torch.testing.assert_close(fast(x), OF_TWO_FUNCTIONS[name](x))
    assert is_native(fast)


def test_methods_of_tensors_that_are_pythons_own():
    """`Tensor.unflatten` calls the one of the base, as attention to another sequence does."""
    torch.manual_seed(0)
    model = nn.TransformerDecoderLayer(8, 2, 16, 0.0)
    twin = nn.TransformerDecoderLayer(8, 2, 16, 0.0)
    twin.load_state_dict(model.state_dict())
    fast = native(lambda x, memory: model(x, memory))
    for _ in range(4):
        x, memory = torch.randn(3, 2, 8), torch.randn(4, 2, 8)
        for each, layer in ((fast, model), (twin, twin)):
            layer.zero_grad()
            each(x, memory).square().sum().backward()
        for own, expected in zip(model.parameters(), twin.parameters()):
            torch.testing.assert_close(own.grad, expected.grad, rtol=1e-4, atol=1e-4)
    assert is_native(fast), (fast.stats(), fast.not_compiled)


def test_operations_on_a_list_that_the_call_has_changed():
    """Effects come behind the graph, so that it would take the list as it was."""

    def f(xs):
        xs.append(xs[-1] * 2)
        xs.pop(0)
        return sum(xs)

    fast = native(f)
    mine, others = ([torch.ones(2), torch.full((2,), 2.0)] for _ in range(2))
    for _ in range(4):
        torch.testing.assert_close(fast(mine), f(others))
        torch.testing.assert_close(mine, others)


@pytest.mark.usefixtures("verified")
def test_a_graph_that_is_not_the_calls_is_not_compiled(monkeypatch):
    """That the log gives what the call gave says nothing of the graph that is made of it: here one
    takes the list as it was ahead of the call, another one leaves out what is written."""

    def appends(xs):
        xs.append(xs[-1] * 2)
        xs.pop(0)
        return sum(xs)

    def writes(xs):
        xs[0].add_(1)
        return xs[0] * 2

    def forgets(self, record, call=_Reader._call):
        if getattr(record[0], "__name__", "") == "add_":
            return self._argument(record[1][0])
        return call(self, record)

    monkeypatch.setattr(_Reader, "_containers", lambda self, forms: iter(()))
    monkeypatch.setattr(_Reader, "_call", forgets)
    for f, reason in ((appends, "the values of the result differ"), (writes, "writes something")):
        fast = native(f)
        mine, others = ([torch.ones(2), torch.full((2,), 2.0)] for _ in range(2))
        for _ in range(3):
            torch.testing.assert_close(fast(mine), f(others))
            torch.testing.assert_close(mine, others)
        (why,) = fast.not_compiled
        assert why.startswith("the graph of the call differs: ") and reason in why
        assert fast.stats()["verify_seconds"] > 0


@pytest.mark.usefixtures("verified")
def test_calls_that_compiled_code_declines_have_a_reason():
    def keeps(x):
        seen.append("call")
        return x * 2 + 1

    seen, x = [], torch.ones(3)
    fast = native(keeps)
    fast(x)
    assert not fast.stats()["replayed"]
    programs = fast._programs[0].compiled.face.programs
    programs._environments[0].specializations.clear()  # as if it stood for other calls
    programs.callable()._arm([])
    assert fast(x).tolist() == [3, 3, 3] and seen == ["call"] * 2
    assert fast.stats()["replayed"] == ["the program does not stand for this call"]
