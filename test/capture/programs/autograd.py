# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modes of autograd, functions with derivatives of their own, transforms, custom operators."""

import torch
import torch.nn.functional as F
from torch import nn, randn
from torch.utils.checkpoint import checkpoint

from capture.corpus import Case, call, program
from capture.operators import doubled, increment


class Doubled(torch.autograd.Function):
    factor = 2.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * Doubled.factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.round_()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def three():
    return call(randn(3))


def three_with_gradient():
    return call(randn(3).requires_grad_())


@program
def function_class():
    return Case(lambda x: Doubled.apply(x) + 1, three)


@program(grad=True)
def function_class_with_gradient():
    return Case(lambda x: Doubled.apply(x) + 1, three_with_gradient)


@program
def function_class_in_place():
    return Case(lambda x: Straight.apply(x) + 1, three)


@program
def custom_operator():
    return Case(lambda x: doubled(x) + 1, three)


@program
def custom_operator_in_place():
    def f(x):
        increment(x)
        return x * 2

    return Case(f, three)


@program
def operator_by_overload():
    return Case(lambda x: torch.ops.aten.add.Tensor(x, x, alpha=2) + torch.ops.aten.relu(x), three)


@program
def no_grad_block():
    def f(x):
        with torch.no_grad():
            y = x * 2
        return y + 1

    return Case(f, three)


@program(grad=True)
def no_grad_block_with_gradient():
    def f(x):
        with torch.no_grad():
            y = x * 2
        return y + x

    return Case(f, three_with_gradient)


@program
def enable_grad_block():
    def f(x):
        with torch.enable_grad():
            y = x * 2
        return y, torch.is_grad_enabled()

    return Case(f, three)


@program
def inference_mode_block():
    def f(x):
        with torch.inference_mode():
            y = x * 2
        return y

    return Case(f, three)


@program
def no_grad_decorator():
    @torch.no_grad()
    def f(x):
        return x * 2

    return Case(f, three)


@program
def set_grad_enabled_left_on():
    def f(x):
        torch.set_grad_enabled(True)
        return x * 2

    return Case(f, three)


@program
def autocast_block():
    linear = nn.Linear(3, 3)

    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return linear(x)

    return Case(f, lambda: call(randn(2, 3)))


@program
def default_dtype_set_within():
    def f(x):
        old = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return torch.ones(3) * 2.0
        finally:
            torch.set_default_dtype(old)

    return Case(f, three)


@program(grad=True)
def gradient_within():
    def f(x):
        y = (x**2).sum()
        (gradient,) = torch.autograd.grad(y, x)
        return gradient * 2

    return Case(f, three_with_gradient)


@program(grad=True)
def backward_within():
    weight = nn.Parameter(torch.ones(3))

    def f(x):
        weight.grad = None
        (x * weight).sum().backward()
        return weight.grad.clone()

    return Case(f, three)


@program(grad=True)
def parameters_that_require_gradients():
    return Case(nn.Linear(3, 3), lambda: call(randn(2, 3)))


@program
def tensor_hook():
    def f(x):
        y = x * 2
        if y.requires_grad:
            y.register_hook(lambda gradient: gradient * 3)
        return y

    return Case(f, three)


@program
def grad_attribute_read():
    weight = nn.Parameter(torch.ones(3))

    def change():
        weight.grad = torch.ones(3)
        return lambda: setattr(weight, "grad", None)

    return Case(lambda x: x * 2 if weight.grad is None else x * 3 + weight.grad, three,
                {"a gradient": change})  # fmt: skip


@program
def vmap():
    scale = 2.0

    def one(x):
        return (x * scale).sum()

    return Case(lambda x: torch.vmap(one)(x), lambda: call(randn(2, 3)))


@program
def function_gradient():
    return Case(lambda x: torch.func.grad(lambda y: (y**3).sum())(x), three)


@program
def jacobian():
    return Case(lambda x: torch.func.jacrev(torch.sin)(x), three)


@program
def functional_call():
    linear = nn.Linear(3, 3)

    def f(x):
        replaced = {"weight": torch.eye(3), "bias": torch.zeros(3)}
        return torch.func.functional_call(linear, replaced, (x,))

    return Case(f, lambda: call(randn(2, 3)))


@program
def checkpointed():
    linear = nn.Linear(3, 3)
    return Case(lambda x: checkpoint(linear, x, use_reentrant=False) + 1, lambda: call(randn(2, 3)))


@program
def called_under_vmap():
    scale = 2.0

    def change():
        return int

    return Case(lambda x: x * scale + x.sum(), three, {"nothing": change})


@program
def attention_function():
    def f(q, k, v):
        return F.scaled_dot_product_attention(q, k, v)

    return Case(f, lambda: call(*(randn(1, 2, 4, 8) for _ in range(3))))


@program
def matmul_precision():
    weight = torch.randn(3, 3)
    return Case(lambda x: x @ weight, lambda: call(randn(2, 3)))


@program
def compiling_asked():
    def f(x):
        if torch.compiler.is_compiling() or torch.jit.is_tracing() or torch.jit.is_scripting():
            return x * 3
        return x * 2

    return Case(f, three)


@program
def nested_compile():
    import weft

    inner = weft.compile(lambda x: x * 2)
    return Case(lambda x: inner(x) + 1, three)


@program
def sparse_within():
    return Case(lambda x: (x.to_sparse() * 2).to_dense(), three)


@program
def complex_numbers():
    def f(x):
        return torch.fft.rfft(x).abs() + torch.view_as_complex(pairs_of(x)).abs()

    return Case(f, lambda: call(randn(4)))


def pairs_of(x):
    return torch.stack([x[:3], x[1:]], dim=-1)


@program
def low_precision():
    return Case(lambda x: (x.bfloat16() @ x.bfloat16().T).float() + x.half().float().sum(),
                lambda: call(randn(2, 3)))  # fmt: skip


@program(grad=True)
def gradient_within_for_a_result():
    def f(x, w):
        (gradient,) = torch.autograd.grad((x * w).exp().sum(), x)
        return gradient + 1

    return Case(f, lambda: call(randn(3).requires_grad_(), randn(3)))


@program
def backward_within_through_a_module():
    layer = nn.Linear(3, 1)

    def f(x):
        with torch.enable_grad():
            layer.weight.grad = None
            layer(x).sum().backward()
        return layer.weight.grad * 2

    return Case(f, lambda: call(randn(2, 3)))


@program
def asks_for_gradients():
    def f(x):
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            return torch.autograd.grad((y * y).sum(), y)[0]

    return Case(f, three)
