# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of second and third order, by compiled programs."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from training_cases import assert_same, tensors

import weft
from weft.compiled.api import _face

A = (3, 4)


@pytest.fixture(autouse=True)
def compare_first_calls(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "first")


def higher(compiled):
    """(order, why PyTorch computes it, calls) of the programs of derivatives."""
    training = _face(compiled).programs.latest().training
    return [(order, each.reason, each.calls) for order, each in training.graph.higher()]


def ready(function, *inputs):
    compiled = weft.compile(function)
    for _ in range(2):
        compiled(*inputs)
    stats = weft.stats(compiled)
    assert stats["hits"] >= 1 and not stats["breaks"], stats
    return compiled


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


@pytest.mark.parametrize("name", CASES)
def test_second_derivative(name):
    function, shapes = CASES[name]
    inputs = tensors(*shapes)
    with sdpa_kernel(SDPBackend.MATH):  # the others have no second derivative
        expected = second(function, inputs)
    compiled = ready(function, *inputs)
    for _ in range(2):
        assert_same(second(compiled, inputs), expected, 1e-9)
    ((order, reason, calls),) = higher(compiled)
    assert (order, reason, calls) == (2, None, 1)


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
    assert [each.graph.derivatives[0].wrt for each in found] == [(0,)]
    assert found[0].calls == 2 and found[0].reason is None
