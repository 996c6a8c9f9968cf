# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions that give what the functions themselves give, call after call."""

import torch

import weft


def called(function, *args):
    """The compiled function, once a program may stand for its calls."""
    compiled = weft.compile(function)
    for _ in range(3):
        torch.testing.assert_close(compiled(*args), function(*args))
    return compiled


def agrees(compiled, function, *args):
    for _ in range(3):
        torch.testing.assert_close(compiled(*args), function(*args), rtol=1e-5, atol=1e-6)


def ready(function, *inputs):
    """Compiled, with the program there for these inputs."""
    compiled = weft.compile(function)
    for _ in range(2):
        compiled(*inputs)
    check_replayed(compiled)
    return compiled


def check_replayed(compiled):
    """That a program has answered a call, and PyTorch none that it should have."""
    stats = weft.stats(compiled)
    assert stats["hits"] >= 1 and not stats["breaks"], stats
