# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activation functions, by torch's own formulas (aten/src/ATen/native/cpu/Activation.cpp)."""

from __future__ import annotations

import math

import torch

from weft.frontend.builder import Builder
from weft.frontend.dtypes import opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Promotion, Site, dim_of, lowers


@lowers("relu.default")
def relu(site: Site, x: Value):
    b = site.builder
    return b.graph.with_level_slope(b.scalar("max", x, 0, "zero"))


@lowers("relu6.default")
def relu6(site: Site, x: Value):
    return hardtanh(site, x, 0, 6)


@lowers("hardtanh.default")
def hardtanh(site: Site, x: Value, low=-1, high=1):
    b, value = site.builder, _clamped(site, x, low, high)
    if b.graph.training:
        inside = b.binary("and", b.compare("gt", x, low), b.compare("lt", x, high))
        value = _where_sloping(b, value, x, inside)
    return value


def _clamped(site: Site, x: Value, low, high) -> Value:
    b = site.builder
    raised = b.graph.with_level_slope(b.scalar("max", x, low, "zero"))
    return b.scalar("min", raised, high, "zero")


def _where_sloping(b: Builder, value: Value, x: Value, slopes: Value) -> Value:
    """`value`, with slope one where `slopes` holds, and elsewhere none. Of NaN PyTorch's vectors
    have that of the comparison that they write, which is not that of the value's steps."""
    zero, one = (b.constant(number, x.dtype, x.shape) for number in (0, 1))
    value = b.with_slopes(value, (x, b.select(slopes, one, zero)), subgradient="zero")
    return b.graph.with_level_slope(value, 1)


@lowers("hardsigmoid.default")
def hardsigmoid(site: Site, x: Value):
    """Its slope is a sixth of float32 to PyTorch, as hardsigmoid_backward_kernel (Activation.cpp)
    writes it, though the value is divided by six."""
    b = site.builder
    (x,) = site.promoted(x)
    value = b.scalar("div", _clamped(site, b.scalar("add", x, 3), 0, 6), 6)
    if b.graph.training:
        sixth = b.constant(torch.tensor(1 / 6, dtype=torch.float32).item(), x.dtype, x.shape)
        inside = b.binary("and", b.compare("gt", x, -3), b.compare("lt", x, 3))
        slope = b.select(inside, sixth, b.constant(0, x.dtype, x.shape))
        value = b.with_slopes(value, (x, slope), subgradient="zero")
    return site.finish(value)


@lowers("hardswish.default")
def hardswish(site: Site, x: Value):
    b = site.builder
    (x,) = site.promoted(x)
    product = b.binary("mul", x, _clamped(site, b.scalar("add", x, 3), 0, 6))
    value = b.scalar("div", product, 6)
    if b.graph.training:
        # Of the product it would be an infinity times zero in its own derivative, where beyond the
        # bounds and at NaN PyTorch has zero.
        none, zero, one = (b.constant(n, x.dtype, x.shape) for n in (math.nan, 0, 1))
        is_low, is_high = b.compare("le", x, -3), b.compare("ge", x, 3)
        beyond = b.select(is_high, one, b.select(is_low, zero, none))
        inside = b.binary("and", b.compare("gt", x, -3), b.compare("lt", x, 3))
        rising = b.scalar("add", b.scalar("div", x, 3), 0.5)
        value = b.with_slopes(value, (x, b.select(inside, rising, beyond)), subgradient="zero")
    return site.finish(value)


@lowers("leaky_relu.default")
def leaky_relu(site: Site, x: Value, slope=0.01):
    b = site.builder
    (x,) = site.promoted(x)
    is_above, below = b.compare("gt", x, 0), b.scalar("mul", x, slope)
    return site.finish(b.graph.with_level_slope(b.select(is_above, x, below), 1))


@lowers("rrelu.default")
def rrelu(site: Site, x: Value, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    if training:
        raise Decline("slopes that are drawn")
    return leaky_relu(site, x, (lower + upper) / 2)


@lowers("softshrink.default")
def softshrink(site: Site, x: Value, width=0.5):
    """Between the borders zero, unsigned as PyTorch's vectors have it, or what is no number."""
    b = site.builder
    (x,) = site.promoted(x)
    less, more = b.scalar("sub", x, width), b.scalar("add", x, width)
    is_low, is_high = b.compare("lt", x, -width), b.compare("gt", x, width)
    within = b.unary("abs", b.scalar("mul", x, 0))
    value = b.select(is_low, more, b.select(is_high, less, within))
    if b.graph.training:
        value = _where_sloping(b, value, x, b.binary("or", is_low, is_high))
    return site.finish(value)


@lowers("hardshrink.default")
def hardshrink(site: Site, x: Value, width=0.5):
    b = site.builder
    (x,) = site.promoted(x)
    inside = b.binary("and", b.compare("ge", x, -width), b.compare("le", x, width))
    value = b.select(inside, b.constant(0, x.dtype, x.shape), x)
    if b.graph.training:
        outside = b.binary("or", b.compare("lt", x, -width), b.compare("gt", x, width))
        value = _where_sloping(b, value, x, outside)
    return site.finish(value)


@lowers("prelu.default", "_prelu_kernel.default")
def prelu(site: Site, x: Value, weight: Value):
    b = site.builder
    if site.target == "aten.prelu.default":
        weight = b.reshape(weight, [weight.size])
        along = 1 if x.rank > 1 else 0
        weight = (
            b.reshape(weight, [1] * x.rank) if weight.size == 1 else b.along(weight, along, x.shape)
        )
    x, weight = site.promoted(x, weight)
    is_above, below = b.compare("gt", x, 0), b.binary("mul", x, weight)
    value = b.select(is_above, x, below)
    if b.graph.training:
        # Their own slopes are those of _prelu_kernel_backward: zero has those of what is above it.
        zero, one = (b.constant(number, x.dtype, x.shape) for number in (0, 1))
        is_falling = b.select(b.compare("ge", x, 0), zero, one)
        slope, along_weight = b.select(is_above, one, weight), b.select(is_above, zero, x)
        slope = b.with_slopes(slope, (weight, is_falling), subgradient="zero")
        along_weight = b.with_slopes(along_weight, (x, is_falling), subgradient="zero")
        value = b.with_slopes(value, (x, slope), (weight, along_weight), subgradient="zero")
        value = b.graph.with_level_slope(value, 1)
    return site.finish(value)


@lowers("elu.default")
def elu(site: Site, x: Value, alpha=1.0, scale=1.0, input_scale=1.0):
    b = site.builder
    (x,) = site.promoted(x)
    # Of what is above zero the power would overflow, and zero times its slope be no number.
    inner = b.scalar("min", x, 0, "one")
    inner = inner if input_scale == 1 else b.scalar("mul", inner, input_scale)
    negative = b.unary("expm1", inner)
    if alpha * scale != 1:
        negative = b.scalar("mul", negative, alpha * scale)
    positive = x if scale == 1 else b.scalar("mul", x, scale)
    value = b.select(b.compare("gt", x, 0), positive, negative)
    if b.graph.training:
        # Of expm1 it would be the power less one, added again. Its own slope at zero is none.
        rising, zero = (b.constant(number, x.dtype, x.shape) for number in (scale, 0))
        inner = b.select(b.compare("ge", x, 0), zero, x)
        inner = inner if input_scale == 1 else b.scalar("mul", inner, input_scale)
        falling = b.scalar("mul", b.unary("exp", inner), input_scale * (alpha * scale))
        value = b.with_slopes(value, (x, b.select(b.compare("gt", x, 0), rising, falling)))
    return site.finish(value)


@lowers("celu.default")
def celu(site: Site, x: Value, alpha=1.0):
    return elu(site, x, alpha, 1.0, 1.0 / alpha)


@lowers("selu.default")
def selu(site: Site, x: Value):
    return elu(site, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


@lowers("softplus.default")
def softplus(site: Site, x: Value, beta=1, threshold=20):
    (x,) = site.promoted(x)
    return site.finish(_softplus(site, x, beta, threshold))


@lowers("mish.default")
def mish(site: Site, x: Value):
    b = site.builder
    (x,) = site.promoted(x)
    return site.finish(b.binary("mul", x, b.unary("tanh", _log1p_exp(site, x))))


def _softplus(site: Site, x: Value, beta, threshold) -> Value:
    b = site.builder
    scaled = x if beta == 1 else b.scalar("mul", x, beta)
    bounded = b.scalar("min", scaled, threshold, "one")
    soft = b.unary("log1p", b.unary("exp", bounded))
    soft = soft if beta == 1 else b.scalar("div", soft, beta)
    is_linear = b.compare("gt", scaled, threshold)
    value = b.select(is_linear, x, soft)
    if b.graph.training:
        power, one = b.unary("exp", bounded), b.constant(1, x.dtype, x.shape)
        slope = b.select(is_linear, one, b.binary("div", power, b.scalar("add", power, 1)))
        # Its own slope is softplus_double_backward's, which at the threshold has ended already.
        rising = b.unary("sigmoid", scaled)
        rising = b.binary("mul", rising, b.binary("sub", one, rising))
        rising = rising if beta == 1 else b.scalar("mul", rising, beta)
        has_ended = b.compare("ge", scaled, threshold)
        rising = b.select(has_ended, b.constant(0, x.dtype, x.shape), rising)
        value = b.with_slopes(value, (x, b.with_slopes(slope, (x, rising))))
    return value


def _log1p_exp(site: Site, x: Value) -> Value:
    """log(1 + e^x) as max(x, 0) + log1p(e^-|x|), which does not overflow, but has a bend at 0."""
    b = site.builder
    rest = b.unary("log1p", b.unary("exp", b.unary("neg", b.unary("abs", x))))
    value = b.binary("add", b.scalar("max", x, 0), rest)
    return b.with_slopes(value, (x, b.unary("sigmoid", x))) if b.graph.training else value


@lowers("log_sigmoid.default")
def log_sigmoid(site: Site, x: Value):
    b = site.builder
    (x,) = site.promoted(x)
    rest = b.unary("log1p", b.unary("exp", b.unary("neg", b.unary("abs", x))))
    value = b.binary("sub", b.scalar("min", x, 0), rest)
    if b.graph.training:
        value = b.with_slopes(value, (x, b.unary("sigmoid", b.unary("neg", x))))
    return site.finish(value)


@lowers("log_sigmoid_backward.default")
def log_sigmoid_backward(site: Site, gradient: Value, x: Value, _buffer: Value):
    """The buffer of the forward's has no derivative to PyTorch."""
    b = site.builder
    gradient, x = site.promoted(gradient, x)
    return site.finish(b.binary("mul", gradient, b.unary("sigmoid", b.unary("neg", x))))


@lowers("gelu.default")
def gelu(site: Site, x: Value, approximate="none"):
    b = site.builder
    value = b.gelu(x, "tanh" if approximate == "tanh" else "erf")
    if approximate == "tanh" or not _runs_in_onednn(site.lying):
        return value
    # oneDNN's of infinity is no number; x times zero is one, and leaves the rest as it is.
    (wide,) = site.promoted(value)
    zero = b.constant(0, wide.dtype, wide.shape)
    return site.finish(b.with_slopes(b.fma(b.convert(x, wide.dtype), zero, wide), (wide, 1)))


def _runs_in_onednn(x: torch.Tensor) -> bool:
    """Whether PyTorch's gelu does: use_mkldnn of ATen/native/Activation.cpp."""
    if not torch.backends.mkldnn.is_available() or not torch._C._get_mkldnn_enabled():
        return False
    is_fit = (
        x.dtype == torch.float32
        or (x.dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())
        or (x.dtype == torch.float16 and torch.ops.mkldnn._is_mkldnn_fp16_supported())
    )
    return is_fit and x.is_contiguous() and x.numel() > 1


@lowers("silu.default")
def silu(site: Site, x: Value):
    return site.builder.silu(x)


@lowers("threshold.default")
def threshold(site: Site, x: Value, limit, value):
    b = site.builder
    (x,) = site.promoted(x, kind=Promotion.NO_OPMATH)
    is_below, number = b.compare("le", x, limit), b.constant(value, x.dtype, x.shape)
    return b.graph.with_level_slope(b.select(is_below, number, x), 2)


@lowers("_softmax_backward_data.default", "_log_softmax_backward_data.default")
def softmax_backward(site: Site, gradient: Value, output: Value, dim: int, input_dtype):
    """The gradient of the operand, from the cotangent and the result of a softmax, or of its
    logarithm."""
    if site.dtype != opmath(site.dtype) or output.dtype != site.dtype or not output.rank:
        raise Decline(f"{site.target} of {site.dtype}")
    b, dims = site.builder, [dim_of(dim, output.rank)]
    is_log = "_log_" in site.target
    products = gradient if is_log else b.binary("mul", gradient, output)
    total = b.broadcast(b.reduce("sum", products, dims, True), output.shape)
    if is_log:
        weighted = b.binary("mul", b.unary("exp", output), total)
        return b.binary("sub", gradient, weighted)
    return b.binary("mul", b.binary("sub", gradient, total), output)
