# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every rule of differentiation, against finite differences in float64 and eager PyTorch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from training_cases import assert_same, compiled_gradients, gradients, tensors

import weft

A, B = (3, 4), (4, 5)


@pytest.fixture(autouse=True)
def compare_first_calls(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "first")


UNARY = {
    name: getattr(torch, name)
    for name in (
        *("neg", "abs", "exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
        *("asinh", "atan", "sigmoid", "erf", "erfc", "square", "reciprocal"),
    )
}
UNARY |= {
    f"positive_{name}": lambda x, name=name: getattr(torch, name)(x.abs() + 1.5)
    for name in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "acosh")
}
UNARY |= {
    f"small_{name}": lambda x, name=name: getattr(torch, name)(0.9 * torch.tanh(x))
    for name in ("asin", "acos", "atanh")
}
ACTIVATIONS = {
    "hardsigmoid": F.hardsigmoid,  # whose slope is a sixth of float32 in float64, too
    "relu": F.relu,
    "relu6": F.relu6,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "elu": F.elu,
    "selu": F.selu,
    "celu": F.celu,
    "leaky_relu": F.leaky_relu,
    "rrelu": F.rrelu,
    "hardtanh": F.hardtanh,
    "hardswish": F.hardswish,
    "softplus": F.softplus,
    "mish": F.mish,
    "logsigmoid": F.logsigmoid,
    "softsign": F.softsign,
    "tanhshrink": F.tanhshrink,
    "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "softmax": lambda x: x.softmax(-1),
    "softmax_0": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(1),
}
BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": lambda x, y: x / (y.abs() + 1),
    "fmod": lambda x, y: torch.fmod(x, y.abs() + 0.3),
    "pow": lambda x, y: (x.abs() + 0.5) ** y,
    "pow_scalar": lambda x, y: (x.abs() + 0.5) ** 2.5 + y**3,
    "atan2": torch.atan2,
    "copysign": torch.copysign,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "where": lambda x, y: torch.where(x > 0, x * y, y),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "mse_loss": F.mse_loss,
    "smooth_l1_loss": F.smooth_l1_loss,
    "twice": lambda x, y: x * x + y * x,
}
REDUCTIONS = {
    "sum": lambda x: x.sum(),
    "sum_dim": lambda x: x.sum(1),
    "mean": lambda x: x.mean(0, keepdim=True),
    "prod": lambda x: x.prod(1),
    "amax": lambda x: x.amax(1),
    "amin": lambda x: x.amin(),
    "max": lambda x: x.max(1).values,
    "min": lambda x: x.min(0).values,
    "var": lambda x: x.var(1),
    "std": lambda x: x.std(),
    "norm": lambda x: x.norm(dim=1),
    "norm_1": lambda x: x.norm(1),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(1),
    "cummax": lambda x: x.cummax(1).values,
    "sort": lambda x: x.sort(1).values,
    "topk": lambda x: x.topk(2).values,
}
SHAPES = {
    "reshape": lambda x: x.reshape(2, 6) * 2,
    "transpose": lambda x: x.t() * 2,
    "permute": lambda x: x.reshape(2, 3, 2).permute(2, 0, 1) * 2,
    "expand": lambda x: x[:, None].expand(3, 2, 4) * 2,
    "expand_ones": lambda x: x[:, :1].expand(3, 4) + 1,
    "slice": lambda x: x[1:, ::2] * 2,
    "select": lambda x: x[1] * 2,
    "cat": lambda x: torch.cat([x, x * 2], 1),
    "stack": lambda x: torch.stack([x, x * x]),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1)) * 2,
    "pad_negative": lambda x: F.pad(x, (-1, 2)) * 2,
    "flip": lambda x: x.flip(1) * 2,
    "roll": lambda x: x.roll(1, 1) * 2,
    "split": lambda x: x.split(2, 1)[1] * 2,
    "repeat": lambda x: x.repeat(2, 1) * 2,
    "unfold": lambda x: x.unfold(1, 2, 1) * 2,
    "tril": lambda x: x.tril() * 2,
    "diagonal": lambda x: x.diagonal() * 2,
    "gather": lambda x: x.gather(1, torch.tensor([[0, 0], [1, 3], [2, 2]])),
    "index_select": lambda x: x.index_select(0, torch.tensor([2, 0, 2])),
    "index": lambda x: x[torch.tensor([0, 2]), torch.tensor([1, 1])],
    "masked_fill": lambda x: x.masked_fill(x > 0, 1.0) * 2,
    "index_add": lambda x: (x * 2).index_add(0, torch.tensor([0, 0, 1]), x),
    "scatter_add": lambda x: (x * 2).scatter_add(
        1, torch.tensor([[0, 0], [1, 3], [2, 2]]), x[:, :2]
    ),
    "index_put": lambda x: torch.index_put(x * 2, (torch.tensor([0, 2]),), x[:2]),
}


def scattered(kind):
    """Several updates of one element, and ties."""
    index = torch.tensor([[0, 1, 2, 1], [0, 0, 2, 2], [1, 1, 0, 0], [0, 0, 0, 0], [2, 2, 1, 1]])
    return lambda x, y: x.scatter_reduce(0, index, y, kind)


CONTRACTIONS = {
    "mm": (lambda x, y: x @ y, [A, B]),
    "mm_t": (lambda x, y: x @ y.t(), [A, (5, 4)]),
    "mm_tt": (lambda x, y: x.t() @ y.t(), [(4, 3), (5, 4)]),
    "mv": (lambda x, y: x @ y, [A, (4,)]),
    "dot": (torch.dot, [(4,), (4,)]),
    "outer": (torch.outer, [(3,), (4,)]),
    "bmm": (torch.bmm, [(2, 3, 4), (2, 4, 5)]),
    "matmul_broadcast": (torch.matmul, [(2, 3, 4), (4, 5)]),
    "linear": (F.linear, [(2, 3, 4), (5, 4), (5,)]),
    "addmm": (torch.addmm, [(5,), A, B]),
    "einsum": (lambda x, y: torch.einsum("bhqd,bkhd->bhqk", x, y), [(2, 2, 3, 4), (2, 5, 2, 4)]),
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, 2, 1), [(2, 3, 8), (4, 3, 3), (4,)]),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, padding=1), [(2, 2, 5, 5), (3, 2, 3, 3), (3,)]),
    "conv2d_strided": (lambda x, w: F.conv2d(x, w, stride=2), [(1, 2, 6, 7), (3, 2, 3, 2)]),
    "conv2d_strided_unevenly": (
        lambda x, w: F.conv2d(x, w, stride=(3, 2), padding=(0, 2)),
        [(2, 3, 8, 9), (4, 3, 4, 3)],
    ),
    "conv2d_strided_far": (lambda x, w: F.conv2d(x, w, stride=3), [(2, 3, 8, 9), (4, 3, 1, 2)]),
    "conv2d_pointwise": (
        lambda x, w: F.conv2d(x, w, stride=(1, 2), padding=1),
        [(2, 3, 4, 6), (4, 3, 1, 1)],
    ),
    "conv2d_dilated": (
        lambda x, w: F.conv2d(x, w, stride=(1, 2), padding=(2, 1), dilation=(2, 1)),
        [(1, 2, 6, 6), (3, 2, 3, 2)],
    ),
    "conv2d_grouped": (
        lambda x, w: F.conv2d(x, w, padding=1, groups=2, stride=2),
        [(2, 4, 5, 5), (6, 2, 3, 3)],
    ),
    "conv2d_depthwise": (
        lambda x, w: F.conv2d(x, w, padding=1, groups=3),
        [(2, 3, 4, 4), (3, 1, 3, 3)],
    ),
    "conv2d_wide_padding": (lambda x, w: F.conv2d(x, w, padding=3), [(1, 2, 3, 3), (2, 2, 2, 2)]),
    "conv3d": (lambda x, w: F.conv3d(x, w, padding=1), [(1, 2, 3, 3, 3), (2, 2, 2, 2, 2)]),
    "conv_transpose2d": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1),
        [(1, 3, 4, 4), (3, 2, 3, 3)],
    ),
}
COMPOSITES = {
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), [(2, 3, 4), (4,), (4,)]),
    "layer_norm_2": (lambda x, w: F.layer_norm(x, (3, 4), w), [(2, 3, 4), (3, 4)]),
    "layer_norm_plain": (lambda x: F.layer_norm(x, (4,)), [(3, 4)]),
    "rms_norm": (lambda x, w: F.rms_norm(x, (4,), w), [(3, 4), (4,)]),
    "group_norm": (
        lambda x, w, b: F.group_norm(x, 2, w, b),
        [(2, 4, 3, 2), (4,), (4,)],
    ),
    "instance_norm": (lambda x: F.instance_norm(x), [(2, 3, 4)]),
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        [(3, 4, 2), (4,), (4,)],
    ),
    "batch_norm_eval": (
        lambda x, w, b: F.batch_norm(x, torch.ones(4).double(), torch.ones(4).double() * 2, w, b),
        [(3, 4, 2), (4,), (4,)],
    ),
    "attention": (F.scaled_dot_product_attention, [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3)]),
    "attention_causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(1, 2, 4, 4), (1, 2, 4, 4), (1, 2, 4, 4)],
    ),
    "attention_masked": (
        lambda q, k, v: F.scaled_dot_product_attention(
            q, k, v, attn_mask=torch.ones(3, 5, dtype=torch.bool).tril(1), scale=0.3
        ),
        [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4)],
    ),
    "attention_biased": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        [(1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4), (3, 5)],
    ),
    "cross_entropy": (
        lambda x: F.cross_entropy(x, torch.tensor([0, 3, 1]), label_smoothing=0.1),
        [(3, 4)],
    ),
    "nll_loss": (lambda x: F.nll_loss(x.log_softmax(1), torch.tensor([0, 3, 1])), [(3, 4)]),
    "bce": (lambda x: F.binary_cross_entropy_with_logits(x, torch.ones(3, 4).double()), [(3, 4)]),
    "embedding": (lambda w: F.embedding(torch.tensor([[1, 1], [0, 2]]), w), [(3, 4)]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), [(2, 2, 6, 6)]),
    "max_pool2d_even": (lambda x: F.max_pool2d(x, 2), [(2, 2, 4, 4)]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2, 1), [(2, 2, 5, 4)]),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 2), [(2, 2, 5, 4)]),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [(1, 2, 3, 3)]),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), [(1, 2, 3, 3)]),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), [(1, 4, 2, 2)]),
    "normalize": (F.normalize, [(3, 4)]),
    "avg_pool2d_large": (lambda x: F.avg_pool2d(x, 12, 3, 2), [(1, 2, 16, 14)]),
    **{
        f"scatter_{kind}": (scattered(kind), [(3, 4), (5, 4)])
        for kind in ("prod", "amax", "amin", "mean")
    },
    "cosine_similarity": (F.cosine_similarity, [(3, 4), (3, 4)]),
    "prelu": (F.prelu, [(3, 4), (4,)]),
}
CASES = {name: (function, [A]) for name, function in {**UNARY, **ACTIVATIONS}.items()}
CASES |= {name: (function, [A, A]) for name, function in BINARY.items()}
CASES |= {f"reduce_{name}": (function, [A]) for name, function in REDUCTIONS.items()}
CASES |= {f"shape_{name}": (function, [A]) for name, function in SHAPES.items()}
CASES |= CONTRACTIONS | COMPOSITES


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CASES)
def test_rule(name):
    function, shapes = CASES[name]
    inputs = tensors(*shapes)
    compiled, found = compiled_gradients(function, inputs)
    assert_same(found, gradients(function, inputs), 1e-9)
    assert torch.autograd.gradcheck(compiled, inputs, atol=1e-5)


# Kinks, ties and what is cut off, where finite differences have no say.
AT_KINKS = {
    "relu": F.relu,
    "relu6": F.relu6,
    "hardtanh": F.hardtanh,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "abs": torch.abs,
    "sign": torch.sign,
    "floor": torch.floor,
    "clamp": lambda x: x.clamp(-1, 1),
    "clamp_min": lambda x: x.clamp(min=0),
    "clamp_tensor": lambda x: x.clamp(torch.zeros(6), torch.ones(6)),
    "threshold": lambda x: F.threshold(x, 0.0, 5.0),
    "maximum": lambda x: torch.maximum(x, x.flip(0).detach()),
    "minimum": lambda x: torch.minimum(x, torch.zeros(6)),
    "softplus": F.softplus,
    "logsigmoid": F.logsigmoid,
    "amax": lambda x: x.reshape(2, 3).amax(1),
    "max_dim": lambda x: x.reshape(2, 3).max(1).values,
    "min_all": lambda x: x.min(),
    "max_pool": lambda x: F.max_pool1d(x.reshape(1, 6), 3),
    "prod": lambda x: x.reshape(2, 3).prod(1),
    "cumprod": lambda x: x.cumprod(0),
    "cummax": lambda x: x.cummax(0).values,
    "cummin": lambda x: x.reshape(2, 3).cummin(1).values,
    "norm": lambda x: (x * 0).norm() + x.norm(),
    "std": lambda x: (x * 0).std(),
    "sqrt": lambda x: x.relu().sqrt()[:1],
    "pow": lambda x: x**0 + x**1,
    "detached": lambda x: x * x.detach().exp(),
    "where": lambda x: torch.where(x > 0, x, -x),
}
KINKS = [
    [-1.0, 0.0, 1.0, 0.0, -1.0, 1.0],
    [-3.0, 3.0, 6.0, 0.0, 0.5, 0.5],
    [0.0] * 6,
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", AT_KINKS)
@pytest.mark.parametrize("values", KINKS)
def test_kinks(name, values):
    function = AT_KINKS[name]
    inputs = [torch.tensor(values, requires_grad=True)]
    _, found = compiled_gradients(function, inputs)
    assert_same(found, gradients(function, inputs), 1e-5)


FLOAT32 = (*CONTRACTIONS, *COMPOSITES, "gelu", "softmax", "reduce_var", "tanh", "silu")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", FLOAT32)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_types(name, dtype):
    function, shapes = CASES[name]
    inputs = tensors(*shapes, dtype=dtype)
    if name in ("batch_norm_eval", "bce"):
        pytest.skip("the case itself is of float64")
    _, found = compiled_gradients(function, inputs)
    assert_same(found, gradients(function, inputs), 1e-4 if dtype == torch.float32 else 0.1)
