# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Families of ops, compiled: sizes around the vectors' width, every dim, dtype and stride."""

import math

import pytest
import test_frontend_elementwise as elementwise
import test_frontend_numeric as numeric
import test_frontend_shape as shape
import torch
import torch.nn.functional as F
from compiled_cases import check
from torch import nn

FLOATS = [torch.float32, torch.float64, torch.bfloat16]
SIZES = [1, 3, 7, 17, 63, 65, 100, 130]


def names(count: int, items: list) -> list:
    """Parts of at most `count` items, for one program each."""
    return [
        pytest.param(items[i : i + count], id=f"{i}-{i + count}")
        for i in range(0, len(items), count)
    ]


# The frontend's own cases, through the whole compiler.


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("functions", names(11, elementwise.UNARY))
def test_unary(functions, dtype):
    special = torch.tensor(elementwise.SPECIAL, dtype=dtype)
    check(functions, special, pointwise=True)
    check(functions, torch.randn(10, 13, dtype=dtype))


@pytest.mark.parametrize(
    "x, y",
    [
        (torch.float32, torch.float32),
        (torch.float64, torch.float32),
        (torch.int64, torch.int64),
        (torch.int32, torch.float32),
        (torch.uint8, torch.int16),
    ],
)
def test_binary(x, y):
    lhs = torch.tensor([[7, 3, 9, 12], [8, 1, 0, 5]]).to(x)
    check(elementwise.BINARY, lhs, torch.tensor([2, 3, 4, 5]).to(y))


def test_promotion():
    zero_dim = torch.tensor(2.0, dtype=torch.float64)
    check(elementwise.PROMOTION, torch.randn(3, 4), torch.arange(5), zero_dim)


@pytest.mark.parametrize("functions", names(20, shape.SHAPE))
def test_shape(functions):
    check(functions, torch.randn(2, 3, 4))


def test_index():
    check(shape.INDEX, torch.randn(2, 3, 4), torch.tensor([[0, 1], [3, 2]]))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("functions", names(13, numeric.REDUCE))
def test_reduce(functions, dtype):
    if dtype == torch.bfloat16:  # the order of roundings decides which elements differ
        functions = [f for f in functions if f not in (numeric.REDUCE[27],)]
    check(functions, torch.randn(2, 3, 4, dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_contract(dtype):
    tensors = torch.randn(2, 3, 4), torch.randn(2, 4, 5), torch.randn(4)
    check(numeric.CONTRACT, *(t.to(dtype) for t in tensors))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_loss(dtype):
    check(numeric.LOSSES, torch.randn(4, 5, dtype=dtype), torch.tensor([0, 1, 4, 2]))


# Sizes.

ROWS = [
    lambda x: x * 2 + x.sigmoid(),
    lambda x: x.softmax(-1),
    lambda x: x.softmax(0),
    lambda x: x.log_softmax(1),
    lambda x: F.layer_norm(x, x.shape[-1:]),
    lambda x: F.rms_norm(x, x.shape[-1:]),
    lambda x: F.normalize(x, dim=1),
    lambda x: x.sum(-1),
    lambda x: x.sum(0),
    lambda x: x.sum((0, 2)),
    lambda x: x.mean(1),
    lambda x: x.var(1, unbiased=False),
    lambda x: (x - x.mean(-1, keepdim=True)).abs().sum(-1) + x[..., 0],
    lambda x: x.transpose(0, 1) + 1,
    lambda x: x.transpose(1, 2).contiguous() * x.transpose(1, 2),
    lambda x: x.exp().sum(1, keepdim=True) + x,
]
EXTREMES = [
    lambda x: x.amax(-1),
    lambda x: x.amin(0),
    lambda x: x.max(1),
    lambda x: x.min(-1, keepdim=True),
    lambda x: x.argmax(-1),
    lambda x: x.argmin(0),
    lambda x: x.argmax(1),
    lambda x: (x - x.amax(-1, keepdim=True)).exp(),
]


@pytest.mark.parametrize("size", SIZES)
def test_rows(size):
    x = torch.randn(3, 5, size)
    check(ROWS + EXTREMES, x)
    check(ROWS + EXTREMES, x.transpose(1, 2).contiguous().transpose(1, 2))


@pytest.mark.parametrize("size", [1, 7, 65, 130])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_rows_of_other_floats(size, dtype):
    check(ROWS + EXTREMES, torch.randn(2, size, 9, dtype=dtype))


def test_rows_without_elements():
    empty = torch.zeros(0, 4)
    check([lambda x: x + 1, lambda x: x.sum(), lambda x: x.sum(1), lambda x: x.softmax(1)], empty)
    check([lambda x: x.sum(0), lambda x: x.prod(0), lambda x: x.any(0), lambda x: x.all()], empty)
    check([lambda x: torch.cat([x, x[:0]]), lambda x: x @ x.new_ones(4, 3), lambda x: x.t()], empty)
    check(lambda x: x @ x.new_ones(0, 3), torch.zeros(2, 0))
    check(ROWS[:1] + ROWS[7:9] + ROWS[13:15], torch.zeros(3, 5, 0))


def test_scalars():
    functions = [
        lambda x: x * 2,
        lambda x: x.exp().sum(),
        lambda x: x.softmax(0),
        lambda x: x.amax(),
        lambda x: x.expand(3, 4) + 1,
        lambda x: x.reshape(1, 1) @ x.reshape(1, 1),
        lambda x: torch.stack([x, x]),
        lambda x: x > 0,
    ]
    check(functions, torch.randn(()))
    check(functions, torch.randn((), dtype=torch.float64))


INTEGERS = [
    lambda x: x + 1,
    lambda x: x * x,
    lambda x: x.sum(),
    lambda x: x.sum(1),
    lambda x: x.prod(1),
    lambda x: x.amax(1),
    lambda x: x.amin(0),
    lambda x: x.argmax(1),
    lambda x: (x > 2).any(1),
    lambda x: (x > 2).all(0),
    lambda x: x.bool(),
    lambda x: x.float() / 3,
    lambda x: x.to(torch.int32) - x.to(torch.int64),
    lambda x: x.to(torch.uint8),
    lambda x: torch.where(x > 2, x, -x.long()),
    lambda x: x.t().contiguous(),
    lambda x: torch.cat([x, x.flip(0)], 1),
    lambda x: x == x.t()[:1].t(),
    lambda x: x // 3,
    lambda x: x % 3,
    lambda x: x.clamp(1, 3),
    lambda x: x.double().mean(0),
]


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
)
def test_integers(dtype):
    functions = INTEGERS
    if dtype == torch.bool:
        functions = [INTEGERS[i] for i in (2, 3, 8, 9, 10, 11, 12, 13, 15, 16, 17, 21)]
        functions = [f for f in functions if f is not INTEGERS[8] and f is not INTEGERS[9]]
        functions += [
            lambda x: x.any(1),
            lambda x: x.all(),
            lambda x: x & ~x[:1],
            lambda x: x ^ x.flip(1),
            lambda x: torch.where(x, 1.5, -1.0),
            lambda x: x.float().masked_fill(x, -math.inf),
        ]
    elif dtype.is_signed:
        functions = [*INTEGERS, lambda x: -x, lambda x: x.abs() - 7, lambda x: x.sign()]
    check(functions, torch.randint(0, 6, (5, 67)).to(dtype))


STRIDED = [
    lambda x: x + 1,
    lambda x: x.softmax(-1),
    lambda x: x.sum(0),
    lambda x: x.reshape(-1) * 2,
    lambda x: F.layer_norm(x, x.shape[-1:]),
    lambda x: x.transpose(0, -1) @ x.transpose(0, -1).mT,
]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.transpose(0, 2),
        lambda x: x.permute(1, 2, 0),
        lambda x: x[:, 1:],
        lambda x: x[:, :, ::2],
        lambda x: x[:, :1].expand(-1, 7, -1),
        lambda x: x.unfold(2, 3, 1)[..., 0],
        lambda x: x[..., :3],
    ],
)
def test_inputs_that_are_views(view):
    check(STRIDED, view(torch.randn(4, 7, 18)))


# Contractions.


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 17, 33, 64, 65, 130])
def test_linear(rows):
    class Linears(nn.Module):
        def __init__(self):
            super().__init__()
            sizes = [(1, 1), (3, 7), (17, 33), (64, 64), (65, 63), (100, 130), (130, 1), (256, 31)]
            self.layers = nn.ModuleList(nn.Linear(*size, bias=size[0] % 2 == 0) for size in sizes)

        def forward(self, x):
            outputs = [layer(x[:, : layer.in_features]) for layer in self.layers]
            residual = x[:, :130] + F.gelu(outputs[5])
            return outputs, residual, self.layers[6](residual).relu()

    check(Linears(), torch.randn(rows, 256))
    if rows in (1, 17, 65):
        check(Linears().double(), torch.randn(rows, 256, dtype=torch.float64))
        check(Linears().bfloat16(), torch.randn(rows, 256, dtype=torch.bfloat16))


@pytest.mark.parametrize(
    "m, k, n", [(1, 1, 1), (7, 3, 17), (17, 65, 7), (63, 100, 65), (3, 130, 1)]
)
def test_matmul(m, k, n):
    functions = [
        lambda a, b: a @ b,
        lambda a, b: a.mT.contiguous().mT @ b,
        lambda a, b: a @ b.mT.contiguous().mT,
        lambda a, b: a[0] @ b[0] + 1,
        lambda a, b: (a @ b).softmax(-1),
        lambda a, b: (a @ b[:1]).sum(0),
        lambda a, b: torch.einsum("bij,bjk->ikb", a, b),
        lambda a, b: torch.einsum("bij,cjk->bcik", a, b),
        lambda a, b: b.mT @ a.mT,
        lambda a, b: a[:, 0] @ b[0],
    ]
    check(functions, torch.randn(3, m, k), torch.randn(3, k, n))
    check(functions, torch.randn(2, m, k).double(), torch.randn(2, k, n).double())


CONVOLUTIONS = [
    nn.Conv2d(5, 7, 3),
    nn.Conv2d(5, 16, 3, padding=1),
    nn.Conv2d(5, 17, 1),
    nn.Conv2d(5, 33, 1, stride=2, bias=False),
    nn.Conv2d(5, 8, 3, stride=2, padding=1),
    nn.Conv2d(5, 6, (1, 3), padding=(0, 2), dilation=(1, 2)),
    nn.Conv2d(5, 5, 3, padding=1, groups=5),
    nn.Conv2d(5, 10, 5, stride=2, padding=2, groups=5),
    nn.Conv2d(5, 5, 7, padding=3, groups=5, bias=False),
    nn.Conv2d(5, 4, 7, stride=4, padding=3),
    nn.Conv2d(5, 3, 3, padding="same", padding_mode="reflect"),
]


@pytest.mark.parametrize("batch, height, width", [(1, 7, 7), (2, 13, 17), (3, 9, 8)])
def test_convolutions(batch, height, width):
    class Convolutions(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(CONVOLUTIONS)

        def forward(self, x):
            outputs = [layer(x) for layer in self.layers]
            return outputs, F.relu(outputs[6] + x), F.max_pool2d(F.relu(outputs[1]), 2)

    x = torch.randn(batch, 5, height, width)
    check(Convolutions().float(), x)
    check(Convolutions().float(), x.to(memory_format=torch.channels_last))
    check(Convolutions().double(), x.double())


def test_convolutions_of_other_ranks():
    check(
        nn.Sequential(nn.Conv1d(3, 18, 5, 2, 2), nn.GELU(), nn.Conv1d(18, 5, 3, dilation=2)),
        torch.randn(2, 3, 41),
    )
    check(nn.Sequential(nn.Conv1d(6, 12, 3, groups=3), nn.ReLU()), torch.randn(1, 6, 9))
    check(
        nn.Sequential(nn.Conv3d(2, 17, 3, padding=1), nn.ReLU(), nn.Conv3d(17, 4, 2, 2)),
        torch.randn(2, 2, 5, 6, 7),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_grouped_convolutions(dtype):
    network = nn.Sequential(
        nn.Conv2d(32, 64, 3, padding=1, groups=2),
        nn.Hardswish(),
        nn.Conv2d(64, 33, 1),
        nn.Conv2d(33, 33, 5, 2, 2, groups=33),
        nn.ReLU(),
        nn.Conv2d(33, 33, 7, 1, 6, dilation=2, groups=33, bias=False),
        nn.Conv2d(33, 44, 3, groups=11),
        nn.Conv2d(44, 44, 3, 2, 1, groups=11),
        nn.Conv2d(44, 44, 3, (1, 2), 1, groups=22),
        nn.Conv2d(44, 88, 3, 2, 1, groups=44),
        nn.Conv2d(88, 44, 1),
        nn.Conv2d(44, 2, 1),
    )
    check(network.to(dtype), torch.randn(2, 32, 43, 37, dtype=dtype))
    signal = nn.Sequential(nn.Conv1d(20, 20, 9, groups=20), nn.SiLU(), nn.Conv1d(20, 40, 3, 2, 1))
    check(signal.to(dtype), torch.randn(1, 20, 50, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_transposed_convolutions(dtype):
    images = nn.Sequential(
        nn.ConvTranspose2d(7, 20, 2, 2),
        nn.ReLU(),
        nn.ConvTranspose2d(20, 18, 4, 2, 1),
        nn.GELU(),
        nn.ConvTranspose2d(18, 3, 3, 2, 1, 1, groups=3),
        nn.Tanh(),
    )
    check(images.to(dtype), torch.randn(2, 7, 5, 3, dtype=dtype))
    waves = nn.Sequential(nn.ConvTranspose1d(5, 33, 16, 8, 4), nn.SiLU(), nn.Conv1d(33, 1, 7))
    check(waves.to(dtype), torch.randn(1, 5, 9, dtype=dtype))
    check(
        nn.Sequential(nn.ConvTranspose3d(3, 16, 2, 2), nn.Sigmoid()).to(dtype),
        torch.randn(1, 3, 2, 3, 5, dtype=dtype),
    )
    apart = nn.Sequential(
        nn.ConvTranspose2d(6, 17, 3, 2, 3, 1, dilation=3),
        nn.ReLU(),
        nn.ConvTranspose2d(17, 4, (3, 2), (4, 1), 1, dilation=(2, 5)),
    )
    check(apart.to(dtype), torch.randn(2, 6, 5, 3, dtype=dtype))


class ConvNet(nn.Module):
    """Inverted residuals with folded norms, as in mobile networks."""

    def __init__(self, channels=24):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU6()
        )
        self.depthwise = nn.Sequential(
            nn.Conv2d(channels, channels, 3, 1, 1, groups=channels, bias=False),
            nn.BatchNorm2d(channels),
            nn.SiLU(),
        )
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, 6, 1),
            nn.ReLU(),
            nn.Conv2d(6, channels, 1),
            nn.Sigmoid(),
        )
        self.project = nn.Sequential(
            nn.Conv2d(channels, channels, 1, bias=False), nn.BatchNorm2d(channels)
        )
        self.head = nn.Linear(channels, 10)

    def forward(self, x):
        x = self.stem(x)
        y = self.depthwise(x)
        x = x + self.project(y * self.gate(y))
        return self.head(x.mean((2, 3))), F.avg_pool2d(x, 3, 2, 1)


@pytest.mark.parametrize("training", [False, True])
def test_convolutional_network(training):
    check(ConvNet().train(training), torch.randn(2, 3, 19, 21))
    check(ConvNet(17).double().train(training), torch.randn(1, 3, 16, 16).double())


POOLS = [
    lambda x: F.max_pool2d(x, 2),
    lambda x: F.max_pool2d(x, 3, 2, 1),
    lambda x: F.max_pool2d(x, 3, 1, 1, 2),
    lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True),
    lambda x: F.avg_pool2d(x, 3, 2, 1),
    lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    lambda x: F.adaptive_avg_pool2d(x, 1),
    lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    lambda x: F.max_pool1d(x[:, :, 0], 3, 2),
    lambda x: F.avg_pool3d(x, 2),
    lambda x: F.max_pool3d(x[:, None], 2),
    lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    lambda x: F.interpolate(x, size=(5, 19)),
    lambda x: F.batch_norm(x, x.mean((0, 2, 3)), x.var((0, 2, 3))),
    lambda x: F.group_norm(x, 3),
    lambda x: F.instance_norm(x),
    lambda x: F.pad(x, (1, 2, 3, 0), value=-1.0),
    lambda x: F.pad(x, (1, 2, 3, 0), mode="reflect"),
    lambda x: F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2),
]


@pytest.mark.parametrize("channels, height, width", [(3, 6, 8), (12, 17, 9), (33, 7, 65)])
def test_pools_and_norms_of_images(channels, height, width):
    x = torch.randn(2, channels, height, width)
    check(POOLS, x)
    # Torch's shape inference itself errs about the strides of pools of channels-last images.
    check(POOLS, x.to(memory_format=torch.channels_last), same_strides=False)


# Attention.


def causal(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length, size", [(1, 8), (5, 16), (17, 64), (33, 30), (130, 64)])
def test_attention(length, size, dtype):
    q, k, v = (torch.randn(2, 3, length, size, dtype=dtype) for _ in range(3))
    keep = torch.ones(2, 1, 1, length, dtype=torch.bool)
    keep[1, ..., length // 2 + 1 :] = False
    attend = F.scaled_dot_product_attention
    functions = [
        lambda q, k, v, keep, bias: attend(q, k, v),
        lambda q, k, v, keep, bias: attend(q, k, v, is_causal=True),
        lambda q, k, v, keep, bias: attend(q, k, v, attn_mask=keep),
        lambda q, k, v, keep, bias: attend(q, k, v, attn_mask=keep & causal(length)),
        lambda q, k, v, keep, bias: attend(q, k, v, attn_mask=bias),
        lambda q, k, v, keep, bias: attend(q, k[:, :, :1], v[:, :, :1], scale=0.2),
        lambda q, k, v, keep, bias: attend(q[:, :, :1], k, v).transpose(1, 2).flatten(2),
        lambda q, k, v, keep, bias: attend(q, k[:, :1], v[:, :1], enable_gqa=True),
        lambda q, k, v, keep, bias: attend(q, k, v[..., :5]),
        lambda q, k, v, keep, bias: attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)),
        lambda q, k, v, keep, bias: (q @ k.mT * 0.1).masked_fill(~keep, -1e9).softmax(-1) @ v,
    ]
    check(functions, q, k, v, keep, torch.randn(1, 3, length, length, dtype=dtype))


@pytest.mark.parametrize("length", [1, 7, 64, 65])
def test_self_attention_block(length):
    layer = nn.TransformerEncoderLayer(48, 4, 65, batch_first=True, dropout=0.0)
    check(layer.train(), torch.randn(2, length, 48))
    check(copy_double(layer), torch.randn(1, length, 48).double())


def copy_double(layer):
    return nn.TransformerEncoderLayer(48, 4, 65, batch_first=True, dropout=0.0).double().train()


def test_cross_attention():
    layer = nn.TransformerDecoderLayer(32, 4, 33, batch_first=True, dropout=0.0)
    check(layer.train(), torch.randn(2, 7, 32), torch.randn(2, 19, 32))


# Shapes and indices at sizes that do not fit.

MOVES = [
    lambda x, i: torch.cat([x, x[:, :5], x * 2], 1),
    lambda x, i: torch.cat([x.sum(1, keepdim=True), x], 1),
    lambda x, i: torch.stack([x, x + 1, x], 2),
    lambda x, i: x[1:, 2:-3:2] + 1,
    lambda x, i: x.flip(0, 1) * 2,
    lambda x, i: x.roll(3, 1),
    lambda x, i: F.pad(x, (3, 70)).softmax(1),
    lambda x, i: F.pad(x, (-2, 4, 1, -1)),
    lambda x, i: x[i].sum(-1),
    lambda x, i: x[:, i % 7],
    lambda x, i: F.embedding(i, x) + x[0],
    lambda x, i: x.gather(0, i[:, None].expand(-1, x.shape[1])),
    lambda x, i: x.index_select(0, i).t(),
    lambda x, i: [part * 2 for part in x.split(4, 1)],
    lambda x, i: x.chunk(3, 1),
    lambda x, i: x.tril(2) + x.triu(-1),
    lambda x, i: x.repeat(2, 3),
    lambda x, i: x.t().reshape(-1)[: x.shape[1]] + x[0],
    lambda x, i: x.t().reshape(x.shape) + x,
    lambda x, i: torch.where(x > 0, x, x.t()[:, :1].t()),
    lambda x, i: x.masked_fill(torch.arange(x.shape[1]) > 5, 0.0),
    lambda x, i: (x.sum(1), x.sum(0), x * 2, x.amax()),
    lambda x, i: F.one_hot(i, 9).sum(0),
]

JOINS = [
    lambda x, i: (half := x / 2, torch.cat([half, x, half.softmax(1), x[i]])),
    lambda x, i: torch.cat([x.t().reshape(x.shape), x.sum(1, keepdim=True), x.cumsum(1)], 1),
    lambda x, i: torch.stack([x[i] * 2, F.embedding(i, x), x.flip(1)[:5]], 1),
    lambda x, i: torch.stack([x, -x, x * x], -1),
    lambda x, i: torch.cat([x, x], 1) + 1,
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_joins(dtype):
    for size in (3, 17, 130, 2500):
        check(JOINS, torch.randn(8, size, dtype=dtype), torch.tensor([0, 7, 3, 3, 1]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_joined_column_is_read_again(dtype):
    def with_sums(x):
        return torch.cat([x, x.sum(-1, keepdim=True)], -1).softmax(-1)

    check(lambda x: with_sums(with_sums(x)), torch.randn(4, 5, dtype=dtype))


@pytest.mark.parametrize("size", [7, 17, 65, 130])
def test_moves(size):
    check(MOVES, torch.randn(8, size), torch.tensor([0, 7, 3, 3, 1]))


def test_moves_of_other_types():
    i = torch.tensor([0, 7, 3, 3, 1])
    for dtype in (torch.float64, torch.bfloat16):
        check(MOVES, torch.randn(8, 19, dtype=dtype), i)
    integers = [MOVES[n] for n in (0, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 19, 20, 22)]
    for dtype in (torch.int64, torch.uint8):
        check(integers, torch.randint(0, 9, (8, 19)).to(dtype), i)


SCANS = [
    lambda x: x.cumsum(0),
    lambda x: x.cumsum(1),
    lambda x: x.cumsum(2) * 2,
    lambda x: x.cumprod(1),
    lambda x: (x > 0).cumsum(2),
    lambda x: x.softmax(-1).cumsum(-1),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scans(dtype):
    check(SCANS, torch.randn(2, 5, 67, dtype=dtype))
    check(SCANS[:3], torch.randint(0, 5, (3, 1, 4)))


def test_in_place():
    def program(x, y):
        x.mul_(2).add_(y)
        y[:, 1:3] = x[:, 1:3]
        return x.sum(1), y

    check(program, torch.randn(4, 19), torch.randn(4, 19))
