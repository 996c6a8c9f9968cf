# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that make a size a number, or compare elements, in programs for ranges of sizes: they
are written in another form there. Against PyTorch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from test_sizes_within_ops import in_one_range
from torch import nn

pytestmark = [pytest.mark.usefixtures("automatic_sizes"), pytest.mark.usefixtures("no_grad")]

SIZES = (20, 17, 32, 29)


def windows(x):
    n, of = x.shape[-1], {"dtype": x.dtype}
    return torch.stack(
        [
            x * torch.hann_window(n, **of),
            x * torch.hamming_window(n, periodic=False, alpha=0.6, **of),
            x * torch.blackman_window(n, True, **of),
            x * torch.logspace(-1, 2, n, base=2.0, **of),
        ]
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_windows(dtype):
    in_one_range(windows, [(torch.randn(2, n, dtype=dtype),) for n in SIZES])


def moments(x):
    return torch.cov(x), x.mT.cov(correction=0).sum(), torch.corrcoef(x)


def test_covariances():
    in_one_range(moments, [(torch.randn(4, n, dtype=torch.float64),) for n in SIZES])


def grids(x, theta):
    inner = F.affine_grid(theta, x.shape, align_corners=False)
    return F.grid_sample(x, inner, align_corners=False), F.affine_grid(theta, x.size(), True)


def test_affine_grids():
    in_one_range(
        grids,
        [
            (torch.randn(2, 3, n, n + 2).double(), torch.randn(2, 2, 3).double())
            for n in (20, 17, 29)
        ],
    )


def searched(sequence, x):
    return torch.searchsorted(sequence, x), torch.searchsorted(sequence, x, right=True)


@pytest.mark.parametrize("sizes", [SIZES, (9, 2, 3, 15, 16), (200, 129, 256, 255)])
def test_searches_in_sequences_of_any_length(sizes):
    calls = []
    for n in sizes:
        sequence = torch.randn(n).round(decimals=1).sort()[0]
        x = torch.cat([sequence[::2], torch.randn(5), sequence.new_tensor([-9, 9, torch.nan])])
        calls.append((sequence, x[:6].reshape(2, 3).clone()))
    in_one_range(searched, calls)


@pytest.mark.parametrize("mode", ["mean", "sum"])
def test_bags_of_as_many_rows(mode):
    bag = nn.EmbeddingBag(20, 5, mode=mode).double()
    in_one_range(bag, [(torch.randint(0, 20, (n - 14, n)),) for n in (20, 17, 29)])
