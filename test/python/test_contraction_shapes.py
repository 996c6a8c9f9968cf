# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers of awkward sizes: every tail of the register tile and of the summation."""

import pytest
import torch
from counting import programs

import weft

ROWS = [1, 2, 3, 15, 16, 17, 64, 65, 130]
# 268 and 388 have no divisor that is whole steps of the unrolled loop near 256.
DEPTHS = [1, 7, 64, 100, 268, 388, 1100, 1793, 3072]
WIDTHS = [1, 10, 33]


class Linears(torch.nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(depth, width) for width in WIDTHS)

    def forward(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        return [layer(x) for x in inputs for layer in self.layers]


@pytest.mark.parametrize("depth", DEPTHS)
def test_linear(depth: int) -> None:
    torch.manual_seed(depth)
    module = Linears(depth).eval()
    inputs = [torch.randn(rows, depth) for rows in ROWS]
    compiled = weft.compile(module)
    with torch.no_grad():
        results = compiled(inputs)
        # Threads that shared a tile would disagree sooner or later.
        for _ in range(20):
            again = compiled(inputs)
            assert all(torch.equal(a, b) for a, b in zip(again, results, strict=True))
        eager = module(inputs)
        exact = module.double()([x.double() for x in inputs])
    assert programs(compiled) == 1
    for ours, theirs, twin in zip(results, eager, exact, strict=True):
        error = (ours - twin).abs().max()
        assert error <= 2 * (theirs - twin).abs().max() + 1e-6
