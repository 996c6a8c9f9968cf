# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors without elements, and what follows from them."""

import pytest
import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")

T = torch.randn
NONE = torch.zeros(0, dtype=torch.long)
CASES = {
    "sum": (lambda x: x.sum(0), T(0, 4)),
    "sumall": (lambda x: x.sum() + 1, T(0, 4)),
    "mean": (lambda x: x.mean(1), T(3, 0)),
    "prod": (lambda x: x.prod(0), T(0, 4)),
    "any": (lambda x: (x > 0).any(0), T(0, 3)),
    "all": (lambda x: (x > 0).all(0), T(0, 3)),
    "lse": (lambda x: torch.logsumexp(x, 0), T(0, 3)),
    "var": (lambda x: x.var(0), T(0, 3)),
    "norm": (lambda x: x.norm(dim=0), T(0, 3)),
    "lin": (lambda x: F.linear(x, torch.ones(4, 0), torch.ones(4)), T(3, 0)),
    "lin -0": (lambda x: F.linear(x, torch.ones(4, 0), -torch.zeros(4)), T(3, 0)),
    "conv": (lambda x: F.conv2d(x, torch.ones(4, 0, 3, 3), torch.ones(4)), T(2, 0, 5, 5)),
    "conv0": (lambda x: F.conv2d(x, torch.ones(4, 3, 3, 3), torch.ones(4)), T(0, 3, 5, 5)),
    "cat": (lambda x: torch.cat([x, torch.ones(3, 2)]), T(0, 2)),
    "catleg": (lambda x: torch.cat([x, torch.ones(3, 2)]), T(0)),
    "flat": (lambda x: -x.flatten(), T(3, 0)),
    "flatsum": (lambda x: (-x.flatten()).sum(), T(3, 0)),
    "flatpad": (lambda x: F.pad((-x).flatten(), (1, 1), value=1.0).exp(), T(3, 0)),
    "view": (lambda x: -x.reshape(2, 0), T(2, 0, 3)),
    "pad": (lambda x: F.pad(x, (1, 2), value=3.0), T(2, 0)),
    "topk": (lambda x: x.topk(0), T(3, 4)),
    "sort": (lambda x: x.sort(1), T(3, 0)),
    "sdpa": (lambda x: F.scaled_dot_product_attention(torch.ones(1, 2, 3, 8), x, x), T(1, 2, 0, 8)),
    "no keys of many queries": (
        lambda x: F.scaled_dot_product_attention(torch.ones(1, 2, 33, 8), x, x),
        T(1, 2, 0, 8),
    ),
    "no queries": (lambda x: F.scaled_dot_product_attention(x[:, :, :0], x, x), T(1, 2, 20, 8)),
    "no depth": (
        lambda x: F.scaled_dot_product_attention(x[..., :0], x[..., :0], x, scale=1.0),
        T(1, 2, 20, 8),
    ),
    "no depth, scaled by it": (
        lambda x: F.scaled_dot_product_attention(x[..., :0], x[..., :0], x),
        T(1, 2, 20, 8),
    ),
    "softmax": (lambda x: x.softmax(1) + 1, T(3, 0)),
    "softmaxint": (lambda x: x.long().softmax(1), T(3, 0)),
    "ln": (lambda x: F.layer_norm(x, (4,)), T(0, 4)),
    "gn": (lambda x: F.group_norm(x, 2), T(0, 4, 3)),
    "bn": (lambda x: F.batch_norm(x, torch.zeros(4), torch.ones(4)), T(0, 4)),
    "idx": (lambda x: x[NONE], T(3, 4)),
    "idxp": (lambda x: x.index_put((NONE,), torch.zeros(0, 4)), T(3, 4)),
    "scat": (lambda x: x.scatter(0, torch.zeros(0, 4, dtype=torch.long), 1.0), T(3, 4)),
    "idxadd": (lambda x: x.index_add(0, NONE, torch.zeros(0, 4)), T(3, 4)),
    "emb": (lambda x: F.embedding(x.long(), torch.ones(5, 3)), T(0, 2)),
    "cumsum": (lambda x: x.cumsum(0), T(0, 3)),
    "bmm": (lambda x: torch.bmm(x, x.transpose(1, 2)), T(2, 3, 0)),
    "bmm0": (lambda x: torch.bmm(x, x.transpose(1, 2)), T(0, 3, 4)),
    "einsum": (lambda x: torch.einsum("ij,kj->ik", x, x), T(3, 0)),
    "baddbmm": (
        lambda x: torch.baddbmm(torch.ones(2, 3, 3), x, x.transpose(1, 2), beta=2.0),
        T(2, 3, 0),
    ),
    "addmm": (lambda x: torch.addmm(torch.ones(3, 3), x, x.t()), T(3, 0)),
    "argmaxe": (lambda x: x.argmax(1), T(0, 3)),
    "pool": (lambda x: F.max_pool2d(x, 2), T(0, 3, 4, 4)),
    "interp": (lambda x: F.interpolate(x, scale_factor=2), T(0, 3, 4, 4)),
    "lstm": (lambda x: torch.nn.LSTM(3, 4)(x)[0], T(2, 0, 3)),
    "outer": (lambda x: torch.outer(x, x), T(0)),
    "dot": (lambda x: torch.dot(x, x), T(0)),
    "mv": (lambda x: torch.mv(x, x.new_zeros(0)), T(3, 0)),
    "stack": (lambda x: torch.stack([x, x]), T(0, 3)),
    "split": (lambda x: x.split([0, 2, 1]), T(3, 2)),
    "unfold": (lambda x: x.unfold(0, 2, 1), T(3, 0)),
    "tri": (lambda x: x.tril(), T(0, 3)),
    "where": (lambda x: torch.where(x > 0, x, 1.0), T(0, 3)),
    "clampmax": (lambda x: x.amax(1), T(0, 3)),
    "std": (lambda x: x.std(), T(0)),
    "mse": (lambda x: F.mse_loss(x, x), T(0, 3)),
    "ce": (lambda x: F.cross_entropy(x, NONE), T(0, 3)),
    "bag": (lambda x: F.embedding_bag(NONE, x, torch.tensor([0])), T(3, 2)),
    "count": (lambda x: x.count_nonzero(), T(0, 3)),
    "histc": (lambda x: torch.histc(x, 4, 0, 1), T(0)),
    "kron": (lambda x: torch.kron(x, x), T(0, 2)),
    "roll": (lambda x: x.roll(1, 0), T(0, 2)),
    "rep": (lambda x: x.repeat(2, 2), T(0, 2)),
    "rep0": (lambda x: x.repeat(0, 2), T(3, 2)),
    "expand": (lambda x: x.expand(0, 4, 3), T(4, 3)),
    "area": (lambda x: F.interpolate(x, scale_factor=0.5, mode="area"), T(1, 1, 1, 1)),
    "silu": (lambda x: F.silu(x) + 1, T(0, 3)),
    "rows of nothing": (lambda x: torch.matmul(x, torch.ones(0, 5)), T(5, 5, 0)),
    "norm of nothing": (
        lambda x: F.layer_norm(x.matmul(torch.ones(1, 8)), (8,)).reshape(0, 5, 8).sum(),
        T(5, 0, 1),
    ),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CASES)
def test_nothing(name):
    function, x = CASES[name]
    torch.manual_seed(1)
    expected = pytree.tree_leaves(function(x))
    torch.manual_seed(1)
    found = pytree.tree_leaves(weft.compile(function)(x))
    for each, other in zip(found, expected, strict=True):
        torch.testing.assert_close(each, other, equal_nan=True)


def test_views_of_nothing():
    """They are at places beyond their base's."""

    def function(x):
        flipped = x.flip(0)
        return flipped[:, :, 2:], flipped

    x = torch.randn(2, 0, 3)
    for each, other in zip(weft.compile(function)(x), function(x), strict=True):
        assert each.shape == other.shape
