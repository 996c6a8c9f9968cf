# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements that are compared with a choice of themselves are the very ones that were chosen from,
though several loops of a program may compute them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

import weft


def test_choices_are_elements(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    torch.manual_seed(0)
    linear, behind, norm = nn.Linear(32, 64), nn.Linear(64, 64), nn.LayerNorm(64)

    def function(x):
        p = F.softmax(linear(x) * 3, -1)
        best = p.gather(-1, p.argmax(-1, keepdim=True))
        y = norm(linear(x))
        is_best = best == p.amax(-1, keepdim=True)
        is_least = (y - y.amin(-1, keepdim=True) == 0).sum(-1)
        turned = p.mT.contiguous()
        return is_best, is_least, p, turned, p.amax(-1), behind(p), y, behind(y), y.amax(-1)

    compiled = weft.compile(function)
    x = torch.randn(4, 32, 32)
    for trained in (False, True):
        is_best, is_least, p, turned, most, _, y, _, of_norm = compiled(x.requires_grad_(trained))
        assert is_best.all()
        assert (is_least == 1).all()
        assert torch.equal(p.mT, turned)
        assert torch.equal(p.amax(-1), most)
        assert torch.equal(y.amax(-1), of_norm)


FUNCTIONS = (torch.exp, torch.tanh, torch.log1p, torch.erf, torch.sin, torch.atan)


def test_functions_of_one_number_and_of_many(monkeypatch):
    """A number for each row is what it is among the others of a vector."""
    monkeypatch.setattr(weft.config, "verify", "off")

    def function(x):
        most = x.amax(-1, keepdim=True)
        return torch.stack([(of(x) == of(most)).sum(-1) for of in FUNCTIONS])

    x = torch.randn(4, 32, 32).abs()
    with torch.no_grad():
        assert torch.equal(weft.compile(function)(x), function(x))
