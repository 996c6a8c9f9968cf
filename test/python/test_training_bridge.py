# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch's autograd does with functions it does with compiled calls."""

from __future__ import annotations

import copy
import threading

import pytest
import torch
from agreeing import ready
from torch import nn

import weft


@pytest.fixture(autouse=True)
def compare_first_calls(verified):
    pass


def leaf(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def several(x, y):
    return {"sum": x + y.exp(), "rest": (x * y, (x > 0).sum(), y.detach() * 2)}


def test_several_outputs():
    x, y = leaf(3, 4), leaf(3, 4, seed=1)
    out, eager = ready(several, x, y)(x, y), several(x, y)
    assert list(out) == list(eager) and type(out["rest"]) is tuple
    assert not out["rest"][1].requires_grad and not out["rest"][2].requires_grad
    assert torch.equal(out["rest"][1], eager["rest"][1])
    for pick in (lambda o: o["sum"].sum(), lambda o: (o["sum"] * o["rest"][0]).sum()):
        found = torch.autograd.grad(pick(out), (x, y), retain_graph=True)
        expected = torch.autograd.grad(pick(eager), (x, y), retain_graph=True)
        for own, other in zip(found, expected):
            torch.testing.assert_close(own, other)


def test_unused_outputs_give_no_gradient():
    def function(x, y):
        return x.sin(), y.cos()

    x, y = leaf(4), leaf(4)
    first, _ = ready(function, x, y)(x, y)
    gradients = torch.autograd.grad(first.sum(), (x, y), allow_unused=True)
    assert gradients[1] is None
    torch.testing.assert_close(gradients[0], x.cos())


def test_a_state_that_is_carried_on_without_being_used():
    """A loss reaches only the newest call in eager execution. Autograd also comes to the calls
    before it, whose saved tensors are gone."""
    weight = leaf(4)

    def step(x, state):
        return (x * weight).tanh(), state * torch.polar(x.sum(), x.mean())

    own = eager = torch.polar(*leaf(2, 4).detach()).requires_grad_()
    compiled = ready(step, leaf(3, 4), own)
    for seed in range(3):
        x = leaf(3, 4, seed=seed)
        y, own = compiled(x, own)
        z, eager = step(x, eager)
        (found,) = torch.autograd.grad(y.sum(), weight)
        (expected,) = torch.autograd.grad(z.sum(), weight)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(own, eager)
    assert weft.stats(compiled)["hits"] >= 3


def test_infinities_of_unused_outputs_do_not_count():
    """The program gives the unused one a cotangent of zeros, and zero times infinity is none."""

    def two(x, y):
        return x * y, x / (y - 1)

    compiled = weft.compile(two)
    x, y = torch.randn(5), torch.tensor([2.0, 3.0, 0.5, -1.0, 4.0])
    at_infinity = torch.tensor([2.0, 1.0, 0.5, -1.0, 4.0])
    for given in (y, y, at_infinity, at_infinity):
        for used in (0, 1):
            found, expected = (
                torch.autograd.grad(call(a, b)[used].sum(), [a, b])
                for call in (compiled, two)
                for a, b in [[each.clone().requires_grad_() for each in (x, given)]]
            )
            for mine, theirs in zip(found, expected, strict=True):
                torch.testing.assert_close(mine, theirs, equal_nan=True)
    assert weft.stats(compiled)["hits"] and not weft.stats(compiled)["breaks"]


def test_strided_and_expanded_cotangents():
    x = leaf(3, 4)
    out = ready(torch.exp, x)(x)
    for cotangent in (
        torch.ones(4, 3).t(),
        torch.ones(1, 1).expand(3, 4),
        torch.randn(3, 8)[:, ::2],
    ):
        (found,) = torch.autograd.grad(out, x, cotangent, retain_graph=True)
        torch.testing.assert_close(found, cotangent * x.exp())


def test_backward_again():
    x = leaf(4)
    compiled = ready(torch.tanh, x)
    out = compiled(x)
    out.sum().backward(retain_graph=True)
    out.sum().backward()
    torch.testing.assert_close(x.grad, 2 * (1 - x.tanh() ** 2))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.sum().backward()
    x.grad = None
    compiled(x).sum().backward()  # the next step works
    torch.testing.assert_close(x.grad, 1 - x.tanh() ** 2)


def test_a_changed_tensor_is_noticed():
    x, w = leaf(4), leaf(4)
    compiled = ready(torch.mul, x, w)
    out = compiled(x, w)
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    out = ready(lambda x: x.exp().exp(), x)(x)
    out.data.add_(0)
    out.sum().backward()


def test_a_changed_tensor_that_pytorch_does_not_read():
    def function(x):
        return torch.nn.functional.layer_norm((x / 255 + 1).sin().cos(), (4,)).exp().sum()

    x = leaf(3, 4)
    (expected,) = torch.autograd.grad(function(x), x)
    out = ready(function, x)(x)
    with torch.no_grad():
        x.zero_()  # a batch's memory, filled anew
    (found,) = torch.autograd.grad(out, x)
    torch.testing.assert_close(found, expected)


def test_views_and_results_of_other_calls_as_inputs():
    base = leaf(4, 4)
    compiled = ready(lambda x: (x * x).sum(), base.t()[:2])
    compiled(base.t()[:2]).backward()
    torch.testing.assert_close(
        base.grad, torch.cat([2 * base[:, :2], torch.zeros(4, 2)], 1).detach()
    )
    middle = compiled(compiled(base.t()[:2]) * base.t()[:2])
    (found,) = torch.autograd.grad(middle, base)
    inner = (base.t()[:2] ** 2).sum()
    (expected,) = torch.autograd.grad(((inner * base.t()[:2]) ** 2).sum(), base)
    torch.testing.assert_close(found, expected)


def test_hooks_fire():
    x = leaf(4)
    compiled, seen = ready(torch.exp, x), []
    out = compiled(x)
    out.register_hook(lambda g: seen.append("out") or 2 * g)
    handle = x.register_hook(lambda g: seen.append("x"))
    out.sum().backward()
    handle.remove()
    assert seen == ["out", "x"]
    torch.testing.assert_close(x.grad, 2 * x.exp().detach())


def order_of_hooks(called, module, x):
    order = []

    def noting(what):
        return lambda *_: order.append(what)

    handles = [x.register_hook(noting("x"))]
    for name, each in module.named_parameters():
        handles.append(each.register_hook(noting(name)))
        handles.append(each.register_post_accumulate_grad_hook(noting(f"{name} is there")))
    called(x).square().sum().backward()
    for handle in handles:
        handle.remove()
    return order


def test_hooks_of_parameters_run_in_the_order_of_eager_execution():
    module = nn.Sequential(
        nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 5), nn.LayerNorm(5), nn.Tanh(), nn.Linear(5, 2)
    )
    compiled = ready(module, leaf(3, 4))
    hits = weft.stats(compiled)["hits"]
    assert order_of_hooks(compiled, module, leaf(3, 4)) == order_of_hooks(
        module, module, leaf(3, 4)
    )
    assert weft.stats(compiled)["hits"] == hits + 1


def test_first_calls_with_hooks_are_not_compared():
    x, calls = leaf(4), []
    x.register_hook(lambda g: calls.append(g))
    compiled = weft.compile(torch.exp)
    for _ in range(4):
        compiled(x)
    assert not calls


def test_random_state_is_left_alone():
    x = leaf(4, 4)
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    ready(lambda x: x.sin() @ x, x)(x).sum().backward()
    assert torch.equal(torch.rand(3), expected)


def test_no_grad_within():
    def function(x):
        with torch.no_grad():
            scale = x.exp()
        return x * scale

    x = leaf(4)
    (found,) = torch.autograd.grad(ready(function, x)(x).sum(), x)
    torch.testing.assert_close(found, x.exp())


def test_second_derivatives():
    def function(x, w):
        return torch.tanh(x @ w).relu().sum()

    x, w = leaf(3, 4), leaf(4, 2, seed=1)
    compiled = ready(function, x, w)

    def penalty(of):
        (gradient,) = torch.autograd.grad(of(x, w), x, create_graph=True)
        return torch.autograd.grad((gradient**2).sum(), (x, w))

    for own, eager in zip(penalty(compiled), penalty(function)):
        torch.testing.assert_close(own, eager)


def test_second_derivatives_with_dropout():
    def function(x):
        return (torch.nn.functional.dropout(x, 0.5) ** 3).sum()

    def twice(of):
        torch.manual_seed(5)
        out = of(x)
        torch.rand(7)
        (gradient,) = torch.autograd.grad(out, x, create_graph=True)
        return torch.autograd.grad(gradient.sum(), x)[0]

    x = leaf(16)
    compiled = ready(function, x)
    torch.testing.assert_close(twice(compiled), twice(function))


def test_hessian_and_jacobian():
    def function(x):
        return (x**3).sum()

    x = leaf(3)
    compiled = ready(function, x)
    torch.testing.assert_close(
        torch.autograd.functional.hessian(compiled, x),
        torch.autograd.functional.hessian(function, x),
    )
    square = ready(torch.square, x)
    torch.testing.assert_close(
        torch.autograd.functional.jacobian(square, x, vectorize=True), torch.diag(2 * x.detach())
    )


def test_backward_in_another_thread():
    x = leaf(4)
    out = ready(torch.sin, x)(x).sum()
    thread = threading.Thread(target=out.backward)
    thread.start()
    thread.join()
    torch.testing.assert_close(x.grad, x.cos().detach())


VIEWS = {
    "of a result": lambda x: (y := x.sin(), y.t()[1:], y[0]),
    "an argument": lambda x: (x.sin(), x),
    "of an argument": lambda x: (x.sin(), x.view(-1)[2:7]),
    "detached": lambda x: (x.sin(), x.detach()),
}


@pytest.mark.parametrize("name", VIEWS)
def test_results_that_share_memory(name):
    function = VIEWS[name]
    compiled = weft.compile(function, capture="export")
    for _ in range(3):
        found = []
        for each in (function, compiled):
            x = leaf(3, 4)
            results = each(x)
            assert results[1].data_ptr() == function(x)[1].data_ptr() or name == "of a result"
            total = sum((r * (n + 1)).square().sum() for n, r in enumerate(results))
            found.append([r.requires_grad for r in results])
            found.append(torch.autograd.grad(total, x)[0])
        assert found[0] == found[2]
        torch.testing.assert_close(found[1], found[3])
    stats = weft.stats(compiled)
    if name == "detached":
        assert "requires gradients on one side alone" in stats["breaks"][0]
    else:
        assert stats["hits"] == 2 and not stats["breaks"], stats


@pytest.mark.parametrize(
    "function, reason",
    [
        (lambda x: x.view(2, 2), "returns but arguments"),
        (lambda x: x, "returns but arguments"),
        (lambda x: (x.mul(2), x.detach().add_(1))[0], "a write that autograd does not see"),
    ],
)
def test_declined_calls_are_as_in_pytorch(function, reason):
    x = leaf(4)
    compiled = weft.compile(function, capture="export")
    with pytest.warns(weft.errors.WeftWarning, match=reason):
        out = compiled(x)
    out.sum().backward()
    assert x.grad is not None


def test_writes_to_an_argument_are_as_in_pytorch():
    x, count = leaf(4), torch.zeros(4, dtype=torch.int64)
    compiled = weft.compile(lambda x, count: x * count.add_(1), capture="export")
    with pytest.warns(weft.errors.WeftWarning, match="writes to an argument"):
        out = compiled(x, count)
    out.sum().backward()
    assert x.grad.tolist() == [1] * 4 and count.tolist() == [1] * 4


def test_tensors_without_elements_have_gradients():
    x, y = leaf(0, 3), leaf(3)
    compiled = weft.compile(lambda x, y: (x * y).sum() + y.sum())
    for _ in range(3):
        x.grad = None
        compiled(x, y).backward()
        assert x.grad.shape == (0, 3)


@pytest.mark.parametrize("sizes", [(0,), (4, 0), (4, 5, 6, 0)])
def test_an_empty_batch_gives_gradients_of_zeros(sizes):
    """Of weights, too, which nothing has been computed of."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    compiled = weft.compile(model)
    for size in (*sizes, *sizes):
        model.zero_grad()
        compiled(torch.randn(size, 3)).sum().backward()
        assert all((each.grad is not None) for each in model.parameters())
        assert size or not any(each.grad.any() for each in model.parameters())


def test_programs_without_gradients_stay_apart():
    x = leaf(4)
    compiled = ready(torch.exp, x)
    with torch.no_grad():
        for _ in range(3):
            assert not compiled(x).requires_grad
    for _ in range(2):
        assert not compiled(x.detach()).requires_grad
    assert compiled(x).requires_grad
    assert not weft.stats(compiled)["breaks"]


def test_saved_tensor_hooks():
    x, packed = leaf(4), []
    compiled = ready(lambda x: x.exp() * x, x)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        out = compiled(x)
    out.sum().backward()
    assert packed
    torch.testing.assert_close(x.grad, (x.exp() * (x + 1)).detach())


def test_unverified_programs_know_what_requires_gradients(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    x, y = leaf(3, 4), leaf(3, 4, seed=1)
    out = weft.compile(several)(x, y)
    assert out["sum"].requires_grad and not out["rest"][2].requires_grad
    first, second = weft.compile(lambda x, y: (x.sin(), y.sort().indices + y.cos()))(x, y)
    apart = dict(allow_unused=True, retain_graph=True)
    assert torch.autograd.grad(first.sum(), (x, y), **apart)[1] is None
    assert torch.autograd.grad(second.sum(), (x, y), **apart)[0] is None


def test_calls_on_results_of_earlier_ones():
    """The gradients that are compared are those of the call, without what comes of the weight by
    way of the state."""

    def cell(x, state, weight):
        return torch.tanh(x @ weight + state)

    weight = leaf(4, 4)
    given = [torch.randn(3, 4, generator=torch.Generator().manual_seed(n)) for n in range(6)]

    def trained(step):
        state = torch.zeros(3, 4)
        for x in given:
            state = step(x, state, weight)
        return torch.autograd.grad(state.square().sum(), weight)[0]

    compiled = weft.compile(cell)
    for _ in range(2):
        torch.testing.assert_close(trained(compiled), trained(cell))
    stats = weft.stats(compiled)
    assert stats["hits"] >= 8 and not stats["breaks"], stats


def test_running_statistics_that_eager_execution_has_saved_stay_as_they_were(verified):
    """A batch norm is called twice ahead of a backward: first by PyTorch, then by a program."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    twin = copy.deepcopy(model)
    compiled = weft.compile(model)
    a, b = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    for each in (compiled, twin):
        (each(a) * each(b)).sum().backward()
    assert weft.stats(compiled)["hits"] == 1
    for own, eager in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(own.grad, eager.grad, atol=1e-5, rtol=1e-4)
    for own, eager in zip(model.buffers(), twin.buffers()):
        torch.testing.assert_close(own, eager)


class _EvalThenTrain(torch.nn.Module):
    """The same layers in eval mode and then in training mode, ahead of one backward."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm
        self.wide = torch.nn.Linear(4, 8)
        self.narrow = torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.narrow(
            torch.relu(self.norm(self.wide(x).unflatten(1, (4, 2)))).repeat(1, 2, 1).flatten(1)
        )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ending", ["first order", "second order", "eval alone"])
@pytest.mark.parametrize(
    "norm",
    [
        torch.nn.BatchNorm1d(4),
        torch.nn.InstanceNorm1d(4, affine=True, track_running_stats=True),
    ],
    ids=lambda norm: type(norm).__name__,
)
def test_derivatives_in_eval_mode_read_statistics_that_were_written_since(verified, norm, ending):
    """A batch norm holds them by reference, and its training mode writes them without a step of
    their version; what was computed of them in the forward stays. An instance norm has copies."""
    torch.manual_seed(0)
    model = _EvalThenTrain(copy.deepcopy(norm)).double()
    twin = copy.deepcopy(model)
    x = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    compiled = weft.compile(model)

    def gradients(run, module):
        module.eval()
        a = run(x)
        module.train()
        b = run(x)
        loss = (a * b).sum() if ending != "eval alone" else a.square().sum()
        if ending == "second order":
            (slope,) = torch.autograd.grad(loss, x, create_graph=True)
            loss = loss + slope.square().sum()
        return torch.autograd.grad(loss, [*module.parameters()], allow_unused=True)

    for _ in range(5):
        for own, eager in zip(gradients(compiled, model), gradients(twin, twin), strict=True):
            torch.testing.assert_close(own, eager)
    assert weft.stats(compiled)["hits"] >= 4, weft.stats(compiled)
