# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that are captured by observing the interpreter."""

import torch

import weft
from weft import _capture
from weft.observe.declared import declare_all


def compiled(function, backend="eager"):
    return weft.compile(function, capture="observe", backend=backend)


def observed(function, *args, **kwargs):
    declare_all()
    return _capture.observe(function, args, kwargs)


def is_whole(function):
    stats = weft.stats(function)
    return stats["graphs"] > 0 and not stats["breaks"]


def is_without_breaks(function):
    """Fails with the reasons, if there are any."""
    stats = weft.stats(function)
    assert not stats["breaks"], stats["breaks"]
    return stats["graphs"] > 0


def values(count=3):
    return torch.arange(float(count)) + 1


def whole(fast, hits=2):
    """Whether programs have answered this number of calls, and PyTorch none."""
    return is_without_breaks(fast) and weft.stats(fast)["hits"] >= hits


def answers(function):
    """Whether programs have answered calls, and PyTorch none."""
    return is_whole(function) and weft.stats(function)["hits"] > 0


def agree(fast, function, *args):
    for _ in range(2):
        found, expected = fast(*args), function(*args)
        assert str(found) == str(expected)
