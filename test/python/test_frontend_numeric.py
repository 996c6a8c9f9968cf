# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, contractions, norms, pools, attention and losses against eager PyTorch."""

import itertools
import json

import pytest
import torch
import torch.nn.functional as F
from frontend_cases import check
from torch import nn

FLOATS = [torch.float32, torch.float64]

REDUCE = [
    lambda x: x.sum(),
    lambda x: x.sum(1),
    lambda x: x.sum((0, -1), keepdim=True),
    lambda x: x.prod(),
    lambda x: x.prod(1),
    lambda x: x.mean(),
    lambda x: x.mean((1, 2), True),
    lambda x: x.amax(1),
    lambda x: x.amin((0, 1)),
    lambda x: x.max(),
    lambda x: x.max(2),
    lambda x: x.min(1, keepdim=True),
    lambda x: x.argmax(),
    lambda x: x.argmin(1, keepdim=True),
    lambda x: (x > 0).any(),
    lambda x: (x > -9).all(1),
    lambda x: x.any(2, keepdim=True),
    lambda x: torch.any(x, dim=()),
    lambda x: x.sum(1, dtype=torch.bool),
    lambda x: x.prod(1, dtype=torch.bool),
    lambda x: x.nansum(1, dtype=torch.bool),
    lambda x: (x > 0).sum(1),
    lambda x: (x > 0).float().mean(),
    lambda x: x.var(),
    lambda x: x.var(1, unbiased=False),
    lambda x: x.std((1, 2), correction=2, keepdim=True),
    lambda x: torch.var_mean(x, 2),
    lambda x: x.cumsum(1),
    lambda x: x.cumprod(2),
    lambda x: x.softmax(1),
    lambda x: x.log_softmax(-1),
    lambda x: F.softmax(x.bfloat16(), -1, dtype=torch.float32),
    lambda x: x.logsumexp((1, 2)),
    lambda x: x.norm(),
    lambda x: x.norm(dim=1, p=1),
    lambda x: x.norm(dim=(1, 2), p=3),
    lambda x: torch.linalg.vector_norm(x, float("inf"), 1),
    lambda x: F.normalize(x, dim=1),
    lambda x: F.cosine_similarity(x[0], x[1]),
    lambda x: torch.count_nonzero(x, 1),
    lambda x: x.diff(dim=1),
    lambda x: torch.aminmax(x, dim=1),
    lambda x: x[0, 0, 0].sum() + x[0, 0, 0].softmax(0),
    lambda x: x.expand(4, 2, 3, 4)[:, 0, 0].sum(0).amax(0),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", REDUCE)
def test_reduce(function, dtype):
    check(function, torch.randn(2, 3, 4, dtype=dtype))


CONTRACT = [
    lambda a, b, v: a @ b,
    lambda a, b, v: a[0] @ b,
    lambda a, b, v: a @ b[0],
    lambda a, b, v: a[:, None] @ b,
    lambda a, b, v: a @ v,
    lambda a, b, v: v @ b,
    lambda a, b, v: v @ v,
    lambda a, b, v: a[0] @ v,
    lambda a, b, v: torch.mm(a[0], b[0]),
    lambda a, b, v: torch.bmm(a, b),
    lambda a, b, v: torch.addmm(v[:3, None], a[0], b[0], beta=0.5, alpha=2),
    lambda a, b, v: torch.baddbmm(v[:1], a, b, alpha=3),
    lambda a, b, v: torch.addmv(v[:3], a[0], v),
    lambda a, b, v: F.linear(a, b.transpose(1, 2)[0], v[0]),
    lambda a, b, v: F.linear(v, a[0]),
    lambda a, b, v: torch.einsum("bij,bjk->bik", a, b),
    lambda a, b, v: torch.einsum("bij,cjk->bcik", a, b),
    lambda a, b, v: torch.einsum("bij,j->i", a, v),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", CONTRACT)
def test_contract(function, dtype):
    tensors = torch.randn(2, 3, 4), torch.randn(2, 4, 5), torch.randn(4)
    check(function, *(t.to(dtype) for t in tensors))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "module",
    [
        nn.Conv1d(4, 6, 3, padding=1),
        nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2),
        nn.Conv2d(4, 4, 3, padding="same", dilation=2, groups=4, bias=False),
        nn.Conv2d(4, 6, (2, 3), padding="valid"),
        nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"),
        nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular"),
        nn.Conv3d(4, 2, 2),
        nn.ConvTranspose1d(4, 6, 3),
        nn.ConvTranspose1d(4, 3, 16, 8, 4),
        nn.ConvTranspose1d(4, 3, 2, 5, output_padding=4),
        nn.ConvTranspose1d(4, 3, 3, 2, 3, 1),
        nn.ConvTranspose1d(4, 3, 5, 2, 6, bias=False),
        nn.ConvTranspose2d(4, 6, 2, 2),
        nn.ConvTranspose2d(4, 6, 4, 2, 1, groups=2),
        nn.ConvTranspose2d(4, 4, 3, 2, 1, 1, groups=4, bias=False),
        nn.ConvTranspose2d(4, 6, (3, 2), (1, 3), (2, 0), (0, 2), dilation=(2, 1)),
        nn.ConvTranspose2d(4, 6, 3, 2, 2, dilation=3),
        nn.ConvTranspose3d(4, 2, 2, 2),
        nn.ConvTranspose3d(4, 2, 3, (2, 1, 3), 1, (1, 0, 2), dilation=(1, 2, 1)),
    ],
)
def test_convolution(module, dtype):
    n = len(module.kernel_size)
    x = torch.randn(2, 4, *[7, 6, 5][:n], dtype=dtype)
    module = module.to(dtype)
    check(module, x)
    check(module, x[0])


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("kernel", [1, 3, 4])
def test_transposed_convolution_of_infinite_inputs(size, kernel):
    """No tap that a result does not have is multiplied by zero, whatever the geometry."""
    torch.manual_seed(size + kernel)
    x = torch.randn(1, 4, size, size)
    x[0, 1, size // 2, 0] = torch.inf
    modules = []
    for stride, dilation in itertools.product((1, 2, 3, 4, 6), repeat=2):
        for padding in (0, 3):
            extra = max(stride, dilation) - 1
            if (size - 1) * stride + dilation * (kernel - 1) + 1 + extra > 2 * padding:
                across = (stride, dilation), (padding, 0), (extra, 0), 2, True, (dilation, stride)
                modules.append(nn.ConvTranspose2d(4, 6, kernel, *across))
    check(lambda x: [module(x) for module in modules], x)


@pytest.mark.parametrize(
    "module",
    [nn.ConvTranspose2d(4, 6, 4), nn.ConvTranspose2d(4, 6, 3, (2, 1), (1, 0), (1, 0), groups=2)],
)
def test_transposed_convolution_of_single_inputs(module):
    """One conv of one tap: no work on the zeros around the input."""
    lowered = check(module, torch.randn(2, 4, 1, 1))
    convs = [node for node in json.loads(lowered.graph)["nodes"] if node["op"] == "weft.conv"]
    assert len(convs) == 1 and convs[0]["attrs"]["padLow"] == [0, 0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.max_pool2d(x, 2),
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: F.max_pool2d(x, 3, 2, 1, 2),
        lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True),
        lambda x: F.max_pool1d(x[:, :, 0], 2, 1),
        lambda x: F.max_pool2d(x[0], 2),
        lambda x: F.avg_pool2d(x, 2),
        lambda x: F.avg_pool2d(x, 3, 2, 1),
        lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
        lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=4),
        lambda x: F.avg_pool2d(x, (3, 100), ceil_mode=True),
        lambda x: F.max_pool2d(x, 9, 9, 4, 2, ceil_mode=True),
        lambda x: F.avg_pool1d(x[:, :, 0], 2),
        lambda x: F.avg_pool3d(x[:, None], 2),
        lambda x: F.adaptive_avg_pool2d(x, 1),
        lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
        lambda x: F.adaptive_avg_pool2d(x, (5, 3)),
        lambda x: F.adaptive_avg_pool1d(x[:, :, 0], 4),
        lambda x: F.adaptive_max_pool2d(x, (3, 4)),
        lambda x: F.adaptive_max_pool2d(x, 1),
    ],
)
def test_pool(function, dtype):
    check(function, torch.randn(2, 3, 6, 8, dtype=dtype))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.bfloat16])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "module",
    [
        nn.LayerNorm(5),
        nn.LayerNorm((6, 5), elementwise_affine=False),
        nn.LayerNorm(5, bias=False),
        nn.GroupNorm(2, 4),
        nn.GroupNorm(4, 4, affine=False),
        nn.InstanceNorm2d(4),
        nn.InstanceNorm2d(4, affine=True),
        nn.InstanceNorm2d(4, track_running_stats=True),
        nn.BatchNorm2d(4),
        nn.BatchNorm2d(4, affine=False),
        nn.BatchNorm2d(4, track_running_stats=False),
        nn.RMSNorm(5),
        nn.RMSNorm(5, eps=1e-3, elementwise_affine=False),
    ],
)
def test_norm(module, training, dtype):
    check(module.train(training).to(dtype), torch.randn(3, 4, 6, 5, dtype=dtype))


def test_local_response_norm():
    check(nn.LocalResponseNorm(2), torch.randn(3, 4, 6, 5))


def test_batch_norm_in_float32_of_bfloat16():
    check(nn.BatchNorm2d(4).eval(), torch.randn(2, 4, 3, 3, dtype=torch.bfloat16))


ATTENTION = [
    {},
    {"is_causal": True},
    {"scale": 0.3},
    {"attn_mask": torch.ones(5, 7, dtype=torch.bool).tril()},
    {"attn_mask": torch.randn(2, 1, 5, 7)},
    {"attn_mask": torch.zeros(2, 1, 1, 7, dtype=torch.bool)},
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("options", ATTENTION)
def test_attention(options, dtype):
    q, k, v = (torch.randn(2, 4, t, d, dtype=dtype) for t, d in ((5, 8), (7, 8), (7, 6)))
    mask = options.get("attn_mask")
    if mask is not None and mask.dtype != torch.bool:
        options = {**options, "attn_mask": mask.to(dtype)}
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options), q, k, v)


def test_attention_shapes():
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8)
    check(lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True), q, k)
    check(lambda q: F.scaled_dot_product_attention(q, q, q), q[0])
    check(lambda q: F.scaled_dot_product_attention(q, q, q), q[0, 0])
    check(lambda q, k: F.scaled_dot_product_attention(q, k, k), q, k[:1, :1])


def test_multihead_attention_module():
    check(nn.MultiheadAttention(8, 2, batch_first=True).eval(), *[torch.randn(2, 5, 8)] * 3)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    check(layer.eval(), torch.randn(2, 5, 8))


LOSSES = [
    lambda x, t: F.cross_entropy(x, t),
    lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1, reduction="sum"),
    lambda x, t: F.cross_entropy(x, t, ignore_index=1),
    lambda x, t: F.nll_loss(x.log_softmax(1), t),
    lambda x, t: F.cross_entropy(x, x.softmax(1)),
    lambda x, t: F.mse_loss(x, x * 2),
    lambda x, t: F.l1_loss(x, x * 2),
    lambda x, t: F.smooth_l1_loss(x, x * 2),
    lambda x, t: F.huber_loss(x, x * 2),
    lambda x, t: F.kl_div(x.log_softmax(1), x.softmax(0)),
    lambda x, t: F.binary_cross_entropy_with_logits(x, (x > 0).to(x.dtype)),
    lambda x, t: F.binary_cross_entropy(x.sigmoid(), (x > 0).to(x.dtype)),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", LOSSES)
def test_loss(function, dtype):
    check(function, torch.randn(4, 5, dtype=dtype), torch.tensor([0, 1, 4, 2]))
