# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program's code may grow to: kernels unroll within bounds, whatever they fuse."""

import pytest
import torch
import torch.nn.functional as F
from guarded import Call, compile_calls

BYTES_OF_PROGRAM, BYTES_OF_CALL = 48 << 10, 2 << 10


def rolls(x):
    for i in range(12):
        x = x + x.roll(2**i, 1)
    return x


def grown(x):
    for _ in range(20):
        x = torch.cat([x, x[:, :1] * 2], 1)
    return x


def written(x):
    x = x.clone()
    for i in range(20):
        x[:, i : i + 5] += x[:, i + 1 : i + 6] * 2
    return x


def table(x):
    numbers = torch.arange(64.0) ** 2 % 7
    return x * numbers + numbers[(x.abs() * 9).long() % 64]


def stacked_layers(x):
    """Norms of what all layers gave so far, as attention over depth reads them."""
    weight = torch.linspace(-1, 1, 16 * 32).view(32, 16)
    layers = [F.linear(x.view(2, 16, 64)[..., :16], weight[:16])]
    for _ in range(4):
        stacked = torch.stack(layers, 2).view(32, -1, 16)
        keys, values = F.linear(F.layer_norm(stacked, (16,)), weight).chunk(2, -1)
        attended = (keys @ values.mT).softmax(-1) @ values
        layers.append(F.linear(attended[:, 0].view(2, 16, 16), weight[16:]))
    return layers[-1]


# A function of (32, 64), and how many calls of ops it is.
PROGRAMS = {
    "pooling that leaves padding out": (
        lambda x: F.avg_pool2d(x[None, None], 3, 1, 1, count_include_pad=False),
        1,
    ),
    "a window of many": (lambda x: F.avg_pool2d(x[None, None], 15, 1, 7), 1),
    "a table": (table, 8),
    "rolls": (rolls, 24),
    "a join of many": (lambda x: torch.cat([x * i for i in range(100)], 1), 101),
    "joins of joins": (grown, 40),
    "writes of slices": (written, 60),
    "repetition": (lambda x: x.repeat(7, 7).reshape(-1, 7).sum(1), 3),
    "stacks": (lambda x: torch.stack([x * i for i in range(40)], -1).sum(-1), 42),
    "norms of stacked layers": (stacked_layers, 44),
    "transposed convolution": (
        lambda x: F.conv_transpose2d(x[None, None], torch.ones(1, 2, 16, 16), stride=16),
        1,
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_code_is_bounded(name, no_grad):
    function, calls = PROGRAMS[name]
    program = compile_calls([Call(name, function, [torch.randn(32, 64)])], "native", threads=2)
    with open(program.path, "rb") as file:
        size = len(file.read())
    assert size < BYTES_OF_PROGRAM + calls * BYTES_OF_CALL
