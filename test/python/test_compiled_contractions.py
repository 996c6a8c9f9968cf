# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions, convolutions and pools, compiled: sizes around the vectors' width."""

import pytest
import torch
import torch.nn.functional as F
from compiled_cases import Together, check
from torch import nn

import weft
from weft.frontend import lower

FLOATS = [torch.float32, torch.float64, torch.bfloat16]


class View(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape

    def forward(self, x):
        return x.reshape(self.shape)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 13, 17, 21, 33, 50, 64, 65, 97, 130])
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


@pytest.mark.parametrize("batch, tokens, width", [(1, 196, 768), (2, 130, 768), (1, 33, 72)])
def test_norms_between_layers_over_features_and_over_tokens(batch, tokens, width):
    """The norm reads blocks of tokens and leaves blocks of features."""

    class GatedMlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.widen = nn.Linear(256, 2 * width)
            self.norm = nn.LayerNorm(width)
            self.mix = nn.Linear(tokens, tokens)
            self.narrow = nn.Linear(width, 256)

        def forward(self, x):
            u, v = F.gelu(self.widen(x)).chunk(2, dim=-1)
            return self.narrow(u * self.mix(self.norm(v).mT).mT)

    x = torch.randn(batch, tokens, 256)
    compiled = check(GatedMlp(), x)
    with torch.no_grad():
        kernels = compiled.profile(x, repeats=1).kernels
    # No kernel but the matmuls computes more than a norm does for each of its elements.
    largest = max(kernel.flops for kernel in kernels if "dot_general" not in kernel.kernel)
    assert largest <= 24 * batch * tokens * width


@pytest.mark.sampled(3)
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


@pytest.mark.parametrize("depth", [256, 784, 2000])
def test_batches_of_deep_matmuls(depth):
    """Rows are fetched ahead, and there are several blocks of columns in each batch."""
    functions = [
        lambda a, b, n=n: a @ b[..., :n].contiguous() for n in (64, 96, 128, 192, 288, 384)
    ]
    check(functions, torch.randn(2, 64, depth), torch.randn(2, depth, 384))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("columns", [7, 91, 100])
def test_flattened_results(columns):
    """Weights' last tile is wider than what is left of the columns."""
    x, linear = torch.randn(48, 7, 17), nn.Linear(17, columns)
    for shape in ((-1,), (48, -1), (7, -1, 4)):
        check(nn.Sequential(linear, View(shape)), x)
        check(nn.Sequential(linear, nn.GELU(), View(shape), nn.ReLU()), x)
    check(nn.Sequential(nn.Conv2d(3, columns, 3, padding=1), nn.Flatten()), torch.randn(2, 3, 7, 5))
    check(nn.Sequential(nn.Conv2d(3, columns, 1), nn.Flatten(2)), torch.randn(2, 3, 7, 5))


def test_one_column():
    """Of a result of more dims than the weight has."""
    for shape in ((17, 4, 17, 3), (2, 2, 2, 3), (3, 5, 4, 2, 16)):
        check(nn.Linear(shape[-1], 1), torch.randn(shape))


@pytest.mark.sampled(3)
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


@pytest.mark.sampled(2)
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("training", [False, True])
def test_convolutional_network(training):
    check(ConvNet().train(training), torch.randn(2, 3, 19, 21))
    check(ConvNet(17).double().train(training), torch.randn(1, 3, 16, 16).double())


class Branches(nn.Module):
    """A block in the form that it is trained in: sums of convolutions and norms of one input."""

    def __init__(self, channels, groups, stride=1, dilation=1):
        super().__init__()

        def branch(window):
            padding = window // 2 * dilation
            conv = nn.Conv2d(
                channels, channels, window, stride, padding, dilation, groups, bias=window == 5
            )
            return nn.Sequential(conv, nn.BatchNorm2d(channels))

        self.branches = nn.ModuleList(branch(window) for window in (1, 3, 3, 5))
        self.identity = nn.BatchNorm2d(channels) if stride == 1 else None
        for norm in self.modules():
            if isinstance(norm, nn.BatchNorm2d):
                for each in (norm.running_var, norm.weight, norm.running_mean, norm.bias):
                    nn.init.uniform_(each, 0.5, 1.5)

    def forward(self, x):
        first, *others = (branch(x) for branch in self.branches)
        total = first if self.identity is None else first - self.identity(x)
        return F.relu(sum(others, total))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("groups", [1, 4, 16])
def test_branches_that_are_one_convolution(groups):
    for options in ({}, {"stride": 2}, {"dilation": 2}):
        module, x = Branches(16, groups, **options).eval(), torch.randn(2, 16, 13, 11)
        compiled = check(module, x)
        assert compiled.ir("optimized").count("weft.conv ") == 1
        check(module.double(), x.double())
        check(module.float().to(memory_format=torch.channels_last), x)
    check(Branches(16, groups), torch.randn(2, 16, 13, 11))


def test_layers_that_read_all_before_them():
    """Joined channels go through a norm of their own for each layer."""

    class Dense(nn.Module):
        def __init__(self):
            super().__init__()
            before = [16, 33, 50, 67]
            self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for channels in before)
            self.convs = nn.ModuleList(nn.Conv2d(channels, 17, 1) for channels in before)

        def forward(self, x):
            features = [x]
            for norm, conv in zip(self.norms, self.convs, strict=True):
                features.append(conv(F.relu(norm(torch.cat(features, 1)))))
            return torch.cat(features, 1)

    check(Dense().eval(), torch.randn(2, 16, 9, 7))
    check(Dense().eval().to(memory_format=torch.channels_last), torch.randn(1, 16, 5, 3))


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
    lambda x: F.pad(x, (2, 1, 0, 3), mode="replicate"),
    lambda x: F.pad(x, (1, 2, 3, 1), mode="circular"),
    lambda x: F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2),
    lambda x: F.pixel_unshuffle(x.repeat(1, 1, 2, 2), 2),
    lambda x: F.interpolate(x, scale_factor=2),
    lambda x: F.interpolate(x, scale_factor=3),
    lambda x: x.repeat_interleave(4, 3) + x.flip(3).repeat_interleave(4, 3),
    lambda x: (x[..., ::2], x[..., 1::3] * 2, x[:, ::2].sum(1), x.flip(1, 3)),
    lambda x: F.silu(F.group_norm(x.repeat(1, 4, 1, 1), 4, x.new_ones(4 * x.shape[1]))),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("channels, height, width", [(3, 6, 8), (12, 17, 9), (33, 7, 65)])
def test_pools_and_norms_of_images(channels, height, width):
    x = torch.randn(2, channels, height, width)
    check(POOLS, x)
    # Torch's shape inference itself errs about the strides of pools of channels-last images.
    check(POOLS, x.to(memory_format=torch.channels_last), same_strides=False)


REFUSED = {
    "matmul": (lambda x: x @ x.mT, torch.bool),
    "linear": (lambda x: F.linear(x[0, 0], x[0, 1]), torch.bool),
    "conv2d": (lambda x: F.conv2d(x, x[..., :2, :2]), torch.bool),
    "conv_transpose2d": (lambda x: F.conv_transpose2d(x, x), torch.int32),
}


@pytest.mark.parametrize("name", REFUSED)
def test_element_types_that_pytorch_refuses_are_refused(name):
    function, dtype = REFUSED[name]
    x = torch.ones(2, 2, 3, 3, dtype=dtype)
    with pytest.raises((RuntimeError, NotImplementedError)) as expected:
        function(x)
    lowered = lower(torch.export.export(Together(function), (x,), strict=False))
    assert lowered.fallbacks
    compiled = weft.compile(function)
    for _ in range(3):
        with pytest.raises(expected.type, match="not implemented for"):
            compiled(x)
