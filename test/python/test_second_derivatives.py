# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of second and third order, by compiled programs."""

from __future__ import annotations

import weakref

import pytest
import torch
import torch.nn.functional as F
from agreeing import ready
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode
from training_cases import assert_same, tensors

import weft
from weft.compiled.api import _face
from weft.gradients.gradient_graph import Derivative

A = (3, 4)


@pytest.fixture(autouse=True)
def compare_first_calls(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "first")


def higher(compiled):
    """(order, why PyTorch computes it, calls) of the programs of derivatives."""
    training = _face(compiled).programs.latest().training
    return [(order, each.reason, each.calls) for order, each in training.graph.higher()]


def second(function, inputs):
    """Of the gradients along cotangents that differ everywhere."""
    out = function(*inputs)
    wanted = [each for each in inputs if each.requires_grad]
    given = torch.linspace(-1, 2, out.numel()).to(out).reshape(out.shape).requires_grad_()
    first = torch.autograd.grad(out, wanted, given, create_graph=True, allow_unused=True)
    first = [each for each in first if each is not None and each.requires_grad]
    along = [torch.linspace(-2, 1, g.numel()).to(g).reshape(g.shape) for g in first]
    return list(torch.autograd.grad(first, [*wanted, given], along, allow_unused=True))


def batch_norm(x, w):
    return F.batch_norm(x, None, None, w[0], w[1], training=True)


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


SMOOTH = {
    **{name: getattr(torch, name) for name in ("exp", "sin", "tanh", "sigmoid", "erf", "atan")},
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "softplus": F.softplus,
    "elu": F.elu,
    "relu_cubed": lambda x: F.relu(x) ** 3,
    "abs_cubed": lambda x: x.abs() ** 3,
    "log_root": lambda x: (x.abs() + 1.5).log() * (x.abs() + 1.5).sqrt(),
    "rsqrt": lambda x: (x.square() + 1).rsqrt(),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(0),
    "logsumexp": lambda x: x.logsumexp(1),
    "mean_var": lambda x: x.var(1) * x.mean(1),
    "norm": lambda x: x.norm(dim=1),
    "prod": lambda x: x.prod(1),
    "amax": lambda x: x.amax(1) ** 2,
    "sort": lambda x: x.sort(1).values ** 2,
    "cumsum": lambda x: x.cumsum(1) ** 2,
    "cumprod": lambda x: x.cumprod(1),
    "cummax": lambda x: x.cummax(1).values ** 2,
    "gather": lambda x: x.gather(1, torch.tensor([[0, 2], [1, 1], [3, 0]])) ** 3,
    "shapes": lambda x: torch.cat([x[:, 1:].t(), x[:, ::2].t() ** 2, x[:, :1].t().expand(2, 3)]),
    "pad_flip": lambda x: F.pad(x**2, (1, -1)).flip(0),
    "max_pool": lambda x: F.max_pool1d(x[None], 2) ** 2,
    "avg_pool": lambda x: F.avg_pool1d(x[None], 2) ** 2,
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 3, 1])),
}
SEVERAL = {
    "mul": (lambda x, y: x * y, [A, A]),
    "div": (lambda x, y: x / (y.square() + 1), [A, A]),
    "pow": (lambda x, y: (x.abs() + 0.5) ** y, [A, A]),
    "where": (lambda x, y: torch.where(x > 0, x * y, y**3), [A, A]),
    "atan2": (torch.atan2, [A, A]),
    "matmul": (torch.matmul, [A, (4, 5)]),
    "bmm": (torch.matmul, [(2, 3, 4), (2, 4, 5)]),
    "linear": (lambda x, w, b: F.linear(x, w, b).tanh(), [A, (5, 4), (5,)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), [A, (4,), (4,)]),
    "group_norm": (lambda x, w: F.group_norm(x, 2, w), [(2, 4, 3), (4,)]),
    "batch_norm": (batch_norm, [(5, 3, 2), (2, 3)]),
    "conv": (lambda x, w: F.conv2d(x, w, padding=1), [(2, 3, 5, 5), (4, 3, 3, 3)]),
    "conv_strided": (lambda x, w: F.conv2d(x, w, stride=2).tanh(), [(1, 2, 6, 6), (3, 2, 3, 3)]),
    "conv_groups": (lambda x, w: F.conv1d(x, w, groups=2), [(1, 4, 6), (4, 2, 3)]),
    "attention": (attention, [(1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4)]),
    "embedding": (lambda w: F.embedding(torch.tensor([0, 2, 2]), w) ** 3, [A]),
    "index_add": (lambda x, y: x.index_add(0, torch.tensor([0, 0, 2]), y) ** 2, [A, A]),
}
CASES = {name: (function, [A]) for name, function in SMOOTH.items()} | SEVERAL


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CASES)
def test_second_derivative(name):
    function, shapes = CASES[name]
    inputs = tensors(*shapes)
    with sdpa_kernel(SDPBackend.MATH):  # the others have no second derivative
        expected = second(function, inputs)
    compiled = ready(function, *inputs)
    for _ in range(4):
        assert_same(second(compiled, inputs), expected, 1e-9)
    # By PyTorch, then from the inputs, then from what the calls have saved.
    assert higher(compiled) == [(2, None, 1), (2, None, 2)]


def test_second_derivative_of_products_with_zeros():
    """Of one and of several in a row, along each other, too."""

    def function(x):
        return torch.cat([x.prod(1), x.cumprod(1).flatten(), *(row.prod()[None] for row in x)])

    rows = [[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [4.0, 0.0, 2.0], [0.0, 5.0, 0.0], [0.0] * 3]
    x = torch.tensor([*rows, [1.5, 2.0, -3.0]], dtype=torch.float64, requires_grad=True)
    compiled, expected = ready(function, x), second(function, [x])
    for _ in range(3):
        assert_same(second(compiled, [x]), expected, 1e-12)
    assert higher(compiled) == [(2, None, 1), (2, None, 1)]


@pytest.mark.parametrize("eps", [None, 0.0, 1e-3])
def test_second_derivative_of_logit_at_its_ends(eps, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    x = torch.tensor([0.0, 1.0, 0.5, 0.1, -1.0, 2.0, torch.nan, torch.inf, 1e-7])
    found = []
    for function in (weft.compile(lambda x: torch.logit(x, eps)), lambda x: torch.logit(x, eps)):
        y = x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(function(y).sum(), y, create_graph=True)
        found.append((slope, *torch.autograd.grad(slope.sum(), y)))
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, equal_nan=True)


def test_second_derivative_of_prelu_at_zero():
    x = torch.tensor([0.0, -0.0, 1.0, -2.0], dtype=torch.float64, requires_grad=True)
    w = torch.tensor([0.25], dtype=torch.float64, requires_grad=True)
    compiled = ready(F.prelu, x, w)
    for _ in range(3):
        found, expected = (second(call, [x, w])[:2] for call in (compiled, F.prelu))
        assert_same(found, expected, 1e-12)


@pytest.mark.parametrize("name", ["gelu", "softmax", "layer_norm", "conv", "attention", "prod"])
def test_gradgradcheck(name):
    function, shapes = CASES[name]
    inputs = tensors(*shapes)
    compiled = ready(function, *inputs)
    assert torch.autograd.gradgradcheck(compiled, inputs, fast_mode=True)
    assert max(calls for _, _, calls in higher(compiled)) > 0


def test_third_order():
    x, w = tensors((3, 4), (4, 2))

    def function(x, w):
        return torch.tanh(x @ w).pow(3).sum()

    def third(of):
        (first,) = torch.autograd.grad(of(x, w), x, create_graph=True)
        (second,) = torch.autograd.grad(first.pow(2).sum(), x, create_graph=True)
        return list(torch.autograd.grad((second**2).sum(), (x, w)))

    compiled = ready(function, x, w)
    expected = third(function)
    for _ in range(3):
        assert_same(third(compiled), expected, 1e-10)
    found = {order: (reason, calls) for order, reason, calls in higher(compiled)}
    assert found[2][0] is None and found[2][1] > 0
    assert found[3][0] is None and found[3][1] > 0


def test_gradient_penalty_of_a_module():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.SiLU(), torch.nn.Linear(8, 1))
    compiled = weft.compile(module)
    x = torch.randn(5, 6, requires_grad=True)

    def penalty(of):
        module.zero_grad(set_to_none=True)
        (gradient,) = torch.autograd.grad(of(x).sum(), x, create_graph=True)
        ((gradient.norm(dim=1) - 1) ** 2).mean().backward()
        return [each.grad for each in module.parameters()]

    expected = penalty(module)
    for _ in range(4):
        assert_same(penalty(compiled), expected, 1e-5)
    assert any(calls for _, _, calls in higher(compiled))


def test_hessian_vector_products():
    def function(x):
        return (x.sin() @ x.cos().t()).pow(2).sum()

    (x,) = tensors((3, 3))
    (v,) = tensors((3, 3), seed=1)
    v = v.detach()
    compiled = ready(function, x)
    for of in (torch.autograd.functional.hvp, torch.autograd.functional.vhp):
        expected = of(function, x, v)[1]
        for _ in range(2):
            torch.testing.assert_close(of(compiled, x, v)[1], expected)
    torch.testing.assert_close(
        torch.autograd.functional.hessian(compiled, x),
        torch.autograd.functional.hessian(function, x),
    )
    assert {reason for _, reason, _ in higher(compiled)} == {None}


def test_linear_functions_have_no_second_derivative():
    (x,) = tensors(A)
    compiled = ready(lambda x: (3 * x).sum(), x)
    for _ in range(2):
        (gradient,) = torch.autograd.grad(compiled(x), x, create_graph=True)
        assert not gradient.requires_grad


def test_changed_inputs_are_noticed():
    (x,) = tensors(A)
    compiled = ready(lambda x: x.tanh().sum(), x)
    out = compiled(x)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(out, x, create_graph=True)


def test_backward_of_gradients_again():
    (x,) = tensors(A)
    compiled = ready(lambda x: (x**3).sum(), x)
    for _ in range(2):
        (gradient,) = torch.autograd.grad(compiled(x), x, create_graph=True)
        first = torch.autograd.grad(gradient.sum(), x, retain_graph=True)
        torch.testing.assert_close(first[0], 6 * x.detach())
        torch.autograd.grad(gradient.sum(), x)
        with pytest.raises(RuntimeError, match="a second time"):
            torch.autograd.grad(gradient.sum(), x)


def test_what_nobody_asked_for_is_not_differentiated():
    """torch.autograd.grad of one input makes no graph of the gradients of the others."""

    def function(x, w):
        return torch.tanh(x @ w).sum()

    inputs = tensors((3, 4), (4, 2))
    compiled = ready(function, *inputs)

    def penalty(call):
        (slope,) = torch.autograd.grad(call(*inputs), inputs[0], create_graph=True)
        return torch.autograd.grad(slope.square().sum(), inputs)

    for _ in range(3):
        assert_same(penalty(compiled), penalty(function), 1e-9)
    training = _face(compiled).programs.latest().training
    found = [each for _, each in training.graph.higher()]
    assert [each.graph.derivatives for each in found] == [(Derivative((0,), (0,)),)] * 2
    assert higher(compiled) == [(2, None, 1), (2, None, 1)]


def penalized(of, module, x):
    """The parameters' gradients of a loss and a penalty of its slope, None where nobody gives any,
    and those of `x`."""
    module.zero_grad(set_to_none=True)
    x.grad = None
    loss = of(x).square().mean()
    (slope,) = torch.autograd.grad(loss, x, create_graph=True)
    (loss + (slope.flatten(1).norm(dim=1) - 1).square().mean()).backward()
    return [each.grad for each in (*module.parameters(), x)]


class Branched(torch.nn.Module):
    """With a dropout, an image, a parameter that no gradient reaches, and one that second ones do
    not reach."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 16, 3, padding=1)
        self.norm = torch.nn.LayerNorm(5)
        self.shift = torch.nn.Parameter(torch.zeros(5))
        self.unused = torch.nn.Parameter(torch.zeros(3))

    def forward(self, x):
        seen = torch.nn.functional.dropout(self.conv(x).tanh(), 0.2)
        return self.norm(torch.exp(seen * 0.3)) + F.relu(x).mean() + self.shift


@pytest.mark.at_length
def test_a_loss_and_a_penalty_pass_the_forward_backwards_once():
    """Later calls show autograd what they save, and go on from there."""
    torch.manual_seed(0)
    module = Branched().double()
    compiled = weft.compile(module)
    x = torch.randn(3, 2, 4, 5, dtype=torch.float64, requires_grad=True)

    def seeded(of):
        torch.manual_seed(3)
        return penalized(of, module, x)

    expected = seeded(module)
    for _ in range(6):
        assert_same(seeded(compiled), expected, 1e-9)
    assert weft.stats(compiled)["hits"] >= 4
    assert [(reason, calls) for _, reason, calls in higher(compiled)] == [(None, 1), (None, 3)]
    # What the penalty alone reaches, and a plain backward, of the same calls.
    for of in (module, compiled, module, compiled):
        torch.manual_seed(4)
        module.zero_grad(set_to_none=True)
        out = of(x)
        (slope,) = torch.autograd.grad(out, x, torch.ones_like(out), create_graph=True)
        slope.square().sum().backward(retain_graph=True)
        only = [each.grad for each in module.parameters()]
        module.zero_grad(set_to_none=True)
        out.sum().backward()
        found = [*only, *(each.grad for each in module.parameters())]
        if of is module:
            expected = [each if each is None else each.clone() for each in found]
        else:
            assert_same(found, expected, 1e-9)


def test_third_order_where_calls_show_what_they_save():
    x, w = tensors((3, 4), (4, 2))

    def function(x, w):
        return torch.tanh(x @ w).exp().sum()

    def penalty(of):
        (slope,) = torch.autograd.grad(of(x, w), x, create_graph=True)
        return list(torch.autograd.grad(slope.square().sum(), (x, w)))

    def third(of):
        (first,) = torch.autograd.grad(of(x, w), x, create_graph=True)
        (second,) = torch.autograd.grad(first.pow(2).sum(), x, create_graph=True)
        return list(torch.autograd.grad((second**2).sum(), (x, w)))

    compiled = ready(function, x, w)
    for _ in range(4):
        assert_same(penalty(compiled), penalty(function), 1e-9)
    assert higher(compiled)[1][2] > 0
    for _ in range(3):
        assert_same(third(compiled), third(function), 1e-9)


def test_what_is_shown_is_watched_and_freed_as_before():
    x, w = tensors((3, 4), (4, 2))

    def function(x, w):
        return torch.tanh(x @ w).square()

    def slope_of(out):
        return torch.autograd.grad(out.sum(), x, create_graph=True)[0]

    compiled = ready(function, x, w)
    for _ in range(4):
        slope_of(compiled(x, w)).sum().backward()
    assert higher(compiled)[1][2] > 0
    out = compiled(x, w)
    slope = slope_of(out)
    slope.sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        slope.sum().backward()
    out = compiled(x, w)
    slope = slope_of(out)
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        slope.sum().backward()
    kept = weakref.ref(compiled(x, w).grad_fn)
    assert kept() is None
    out = compiled(x, w)
    kept = weakref.ref(out.grad_fn)
    slope_of(out.square()).sum().backward()
    del out
    assert kept() is None  # without a collection


def test_an_infinity_that_zeros_would_meet():
    """A result that nobody uses has no cotangent to autograd, and to a program one of zeros."""
    (x,) = tensors((4,))
    x = (x.abs() + 0.5).detach()
    x[1] = 0
    x.requires_grad_()

    def function(x):
        return x.sqrt(), (x * x * 3).sin()

    def second(of):
        _, smooth = of(x)
        (slope,) = torch.autograd.grad(smooth.sum(), x, create_graph=True)
        return list(torch.autograd.grad(slope.square().sum(), x))

    compiled = ready(function, x)
    for _ in range(4):
        assert_same(second(compiled), second(function), 1e-9)


def test_ops_of_a_backward_are_seen_by_who_watches():
    """A tracer, and a counter of operations, see PyTorch's ops where a program would be none."""
    x, w = tensors((3, 4), (4, 2))
    compiled = ready(lambda x, w: torch.tanh(x @ w), x, w)
    out = compiled(x, w)

    def gradient(given):
        return torch.autograd.grad(out, x, given, retain_graph=True)[0]

    traced = make_fx(gradient)(torch.ones(3, 2, dtype=torch.float64))
    given = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(3, 2)
    torch.testing.assert_close(traced(given), gradient(given))
    with FlopCounterMode(display=False) as counter:
        gradient(given)
    assert counter.get_total_flops() > 0


def test_what_a_checkpoint_saves_is_asked_for_once():
    """PyTorch's own error says so otherwise."""

    def f(x):
        return (x.sin() * x.exp()).tanh()

    def derivatives(function, x):
        y = checkpoint(function, x, use_reentrant=False)
        loss = y.square().sum()
        (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
        return torch.autograd.grad(gradient.square().sum() + loss, x)[0]

    compiled, x = weft.compile(f), torch.randn(5, dtype=torch.float64, requires_grad=True)
    compiled(x)
    for _ in range(5):
        torch.testing.assert_close(derivatives(compiled, x), derivatives(f, x))


def test_a_first_call_within_a_checkpoint_is_called_again_as_it_was(verified):
    def f(x):
        return (x.sin() * x.exp()).tanh()

    compiled, x = weft.compile(f), torch.randn(5, requires_grad=True)
    for _ in range(4):
        checkpoint(compiled, x, use_reentrant=False).sum().backward()
    assert weft.stats(compiled)["hits"] >= 3
    (expected,) = torch.autograd.grad(f(x).sum(), x)
    torch.testing.assert_close(x.grad, 4 * expected)
