# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that compiled functions give what the functions themselves give, call after call."""

import torch

import weft


def called(function, *args):
    """Calls the function and its compiled form until a program may stand for the calls. Gives the
    latter."""
    compiled = weft.compile(function)
    for _ in range(3):
        torch.testing.assert_close(compiled(*args), function(*args))
    return compiled


def agrees(compiled, function, *args):
    for _ in range(3):
        torch.testing.assert_close(compiled(*args), function(*args), rtol=1e-5, atol=1e-6)


def ready(function, *inputs):
    """The compiled function, once there is a program for these inputs."""
    compiled = weft.compile(function)
    for _ in range(2):
        compiled(*inputs)
    check_replayed(compiled)
    return compiled


def check_replayed(compiled):
    """Checks that a program has answered a call, and that PyTorch has run none that one should
    answer."""
    stats = weft.stats(compiled)
    assert stats["hits"] >= 1 and not stats["breaks"], stats
