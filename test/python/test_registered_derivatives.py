# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of the user's that have derivatives of their own are operations of compiled training
programs, and PyTorch runs their derivatives."""

import pytest
import torch

import weft
from weft import te

# Not the derivative of what the operator computes: a program that differentiated that would differ.
FACTOR = 0.5


@pytest.fixture(scope="module")
def scaled():
    """(x, y, factor, *, negated) to x * y * factor, and where x is positive."""

    @torch.library.custom_op("weft_derivatives::scaled", mutates_args=())
    def op(
        x: torch.Tensor, y: torch.Tensor, factor: float, *, negated: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return x * y * (-factor if negated else factor), (x > 0).to(torch.int64)

    @op.register_fake
    def _(x, y, factor, *, negated=False):
        return torch.empty_like(x), torch.empty_like(x, dtype=torch.int64)

    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.save_for_backward(*inputs[:2])
        ctx.factor = inputs[2] * (-1 if keyword_only_inputs["negated"] else 1)
        ctx.mark_non_differentiable(output[1])

    def backward(ctx, gradient, _):
        x, y = ctx.saved_tensors
        gradient = gradient * ctx.factor * FACTOR
        needed = ctx.needs_input_grad
        return gradient * y if needed[0] else None, gradient * x if needed[1] else None, None

    op.register_autograd(backward, setup_context=setup)
    return op


def gradients(function, arguments, order=1):
    """What it gives, and gradients up to the order."""
    given = [each.detach().clone().requires_grad_(each.requires_grad) for each in arguments]
    wanted = [each for each in given if each.requires_grad]
    found = [function(*given)]
    for left in reversed(range(order)):
        scalar = sum((each**2).sum() for each in found)
        found += torch.autograd.grad(scalar, wanted, create_graph=left > 0)
    return found


def check(function, *arguments, order=1):
    compiled = weft.compile(function)
    for _ in range(3):
        found = gradients(compiled, arguments, order)
        torch.testing.assert_close(found, gradients(function, arguments, order))
    stats = weft.stats(compiled)
    assert not stats["breaks"] and stats["hits"], stats


def values(*sizes, requires_grad=True):
    return torch.randn(sizes, dtype=torch.float64, requires_grad=requires_grad)


@pytest.mark.parametrize("both", [True, False])
def test_registered_operators(scaled, both):
    def function(x, y):
        product, positive = scaled(x, y, 3.0, negated=True)
        return scaled(product, y, 0.5)[0] * positive

    check(function, values(4, 6), values(4, 6, requires_grad=both), order=2 if both else 1)


def test_an_operator_without_a_derivative():
    @torch.library.custom_op("weft_derivatives::cube", mutates_args=())
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x**3

    cube.register_fake(torch.empty_like)
    compiled = weft.compile(lambda x, y: cube(x * 2) * y)
    x, y = values(3, requires_grad=False), values(3)
    for _ in range(3):
        torch.testing.assert_close(compiled(x, y), cube(x * 2) * y)
        with pytest.raises(RuntimeError, match="no autograd formula"):
            compiled(x.clone().requires_grad_(), y).sum().backward()


def test_an_operator_that_writes_is_named():
    @torch.library.custom_op("weft_derivatives::doubled", mutates_args=("x",))
    def doubled(x: torch.Tensor) -> None:
        x.mul_(2)

    def function(x):
        torch.ops.weft_derivatives.doubled(x)
        return x + 1

    compiled, x, twin = weft.compile(function), *torch.ones(2, 3)
    for _ in range(3):
        assert torch.equal(compiled(x), function(twin)) and torch.equal(x, twin)
    (reason,) = weft.stats(compiled)["breaks"]
    assert "weft_derivatives.doubled.default writes to its arguments" in reason
    assert "calls an operator that writes, doubled" in reason


def test_tensor_expressions():
    @te.kernel
    def swish(x, slopes):
        return te.compute(x.shape, lambda i, j: x[i, j] * te.sigmoid(slopes[j] * x[i, j]))

    check(lambda x, b: torch.relu(swish(x * 2, b)), values(4, 6), values(6), order=2)
