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


def beside_eager(make, calls, change=lambda number, world: None, backend="eager"):
    """What a program gives and leaves beside eager execution, each in a world of its own.

    make: gives a world: what is called, a function that gives the arguments of a call by its
    number, and one that tells the state, or just what is called, of one tensor. change: happens
    ahead of each call, with what `make` gave. Returns the compiled callable.
    """
    worlds = []
    for capturing in (False, True):
        made = make()
        world = made if isinstance(made, tuple) else (made, lambda number: (values(),), tuple)
        worlds.append((compiled(world[0], backend) if capturing else world[0], world))
    for number in range(calls):
        told = []
        for called, world in worlds:
            change(number, world)
            torch.manual_seed(number)
            told.append((called(*world[1](number)), world[2](), torch.rand(1)))
        assert str(told[0]) == str(told[1]), number
    return worlds[1][0]


def captures(function):
    return weft.stats(function)["captures"]
