# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Anomaly mode: calls in it are PyTorch's, so that its errors name the operation."""

from __future__ import annotations

import pytest
import torch
from agreeing import ready

import weft


@pytest.fixture(autouse=True)
def compare_first_calls(verified):
    pass


class Counting(torch.nn.Module):
    """Calls of it write, and so are run by Python."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return (x.sqrt() * 0).sum()


def test_anomaly_mode():
    """PyTorch's error names the operation, and there is one only where one gives no number."""
    x = torch.zeros(2, requires_grad=True)
    for program in (lambda x: (x.sqrt() * 0).sum(), Counting()):
        compiled = ready(program, torch.ones(2, requires_grad=True))
        hits = weft.stats(compiled)["hits"]
        with torch.autograd.detect_anomaly(check_nan=True):
            with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan"):
                compiled(x).backward()
            compiled(x + 1).backward()
        assert weft.stats(compiled)["hits"] == hits
        compiled(x + 1).backward()
        assert weft.stats(compiled)["hits"] == hits + 1
    ones = torch.ones(2, requires_grad=True)
    difference = ready(lambda x: (x - x).sqrt() * x, ones)
    with torch.autograd.detect_anomaly(check_nan=True):
        difference(ones).sum().backward()
