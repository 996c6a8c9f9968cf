# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients that are zero but for rounding, beside others that are not."""

import pytest
import torch
from test_gradients_at_kinks import FAULTS

import weft
from weft.compiled.gradient_values import compare_values
from weft.compiled.rounded import Rounded
from weft.compiled.verification import Differs

nn = torch.nn

LARGE = torch.linspace(-300, 500, 8)


def _compare(eager, own, noise, large=LARGE, exact=0.0):
    """Two gradients: one that is zero, and a large one. noise: what random rounding leaves of the
    first one."""

    def compute(rounding):
        return [torch.full((4,), noise if rounding else 0.0), LARGE]

    zero = torch.full((4,), exact, dtype=torch.float64)
    return compare_values(
        [torch.tensor([*eager, 0.0, 0.0]), LARGE],
        [torch.tensor([*own, 0.0, 0.0]), large],
        lambda: [zero, LARGE.double()],
        [torch.ones(4)],
        rounded=Rounded(compute, b"", "gradients"),
    )


def test_noise_is_what_random_rounding_leaves():
    assert _compare((9e-6, -2e-5), (-1e-5, 0.0), noise=5e-6)
    assert _compare((9e-6, -2e-5), (0.0, 0.0), noise=5e-6)
    for own in ((5e-5, 0.0), (float("nan"), 0.0), (1e-5, -1.0)):
        with pytest.raises(Differs, match="noise alone"):
            _compare((9e-6, -2e-5), own, noise=5e-6)
    with pytest.raises(Differs, match="noise alone"):  # of no rounding
        _compare((9e-6, -2e-5), (-1e-5, 0.0), noise=1e-6)
    with pytest.raises(Differs, match="noise alone"):  # more than the last bit of the large one
        _compare((9e-5, -2e-4), (-1e-4, 0.0), noise=5e-5)
    with pytest.raises(Differs, match="noise alone"):  # not zero
        _compare((9e-6, -2e-5), (-1e-5, 0.0), noise=5e-6, exact=1e-8)


@pytest.mark.parametrize("fault", FAULTS)
def test_others_have_to_be_right(fault):
    with pytest.raises(Differs):
        _compare((9e-6, -2e-5), (-1e-5, 0.0), noise=5e-6, large=FAULTS[fault](LARGE))


@pytest.mark.usefixtures("verified")
def test_a_norm_ahead_of_a_norm_trains():
    """As in LeViT, whose shortest branches are a norm, a product without a bias and a norm."""
    torch.manual_seed(0)
    norms = [nn.BatchNorm1d(16), nn.Linear(16, 16, bias=False), nn.BatchNorm1d(16, affine=False)]
    module = nn.Sequential(nn.Linear(8, 16), *norms)
    norms[1].weight.data *= 0.1  # for a large gradient
    compiled = weft.compile(module)
    for _ in range(3):
        compiled(torch.randn(512, 8)).square().sum().backward()
    stats = weft.stats(compiled)
    assert stats["hits"] == 2 and not stats["breaks"], stats
