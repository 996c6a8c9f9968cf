# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/by_hand.py: the classes of all 10,000 test images are PyTorch's."""

from __future__ import annotations

import pytest
import torch
from examples import by_hand

from weft import ir


def test_all_classes_are_pytorchs(capsys):
    assert by_hand.main(trained_on=6400) == 0
    out = capsys.readouterr().out
    assert "functions: main fused_matmul_add0 fused_matmul_add1" in out
    assert "for i0 in 0..1000 spatial, i1 in 0..128 spatial, i2 in 0..784 reduction [SSR]" in out
    assert out.endswith("0 classes differ from PyTorch's\n") and "10000 images" in out


@pytest.mark.parametrize("lowers", [False, True])
@pytest.mark.parametrize("fuses", [False, True])
def test_each_step_computes_the_same(fuses, lowers):
    torch.manual_seed(0)
    model, x = by_hand.Mlp(), torch.randn(5, 784)
    module = by_hand.build(dict(model.named_parameters()), 5)
    if fuses:
        by_hand.fuse_matmul_add(module)
    if lowers:
        ir.lower_ops(module, by_hand.BODIES)
    for stage in ("graph", "kernels"):
        torch.testing.assert_close(ir.run(module, stage, x), model(x).detach())
