# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions of torch.utils.checkpoint, whose values the user wants computed again in the backward.

What they call is marked in the traced graph. For a process that traces and ends: they replace
torch's own functions.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch.utils.checkpoint as checkpoint
from torch.fx.traceback import annotate, preserve_node_meta

from weft.frontend.walk import CHECKPOINTED

_MARK = {CHECKPOINTED: True}


@contextlib.contextmanager
def checkpoints_marked() -> Iterator[None]:
    generator, function = (
        checkpoint._checkpoint_without_reentrant_generator,
        checkpoint.CheckpointFunction,
    )
    checkpoint._checkpoint_without_reentrant_generator = _marked(generator)
    checkpoint.CheckpointFunction = _Region
    try:
        yield
    finally:
        checkpoint._checkpoint_without_reentrant_generator = generator
        checkpoint.CheckpointFunction = function


def _marked(generator: Callable[..., Any]) -> Callable[..., Any]:
    """Of a region that begins and ends where its caller resumes it."""

    @functools.wraps(generator)
    def marked(*args: Any, **kwargs: Any) -> Iterator[None]:
        region = generator(*args, **kwargs)
        with preserve_node_meta(), annotate(_MARK):
            yield from region

    return marked


class _Region:
    """Stands for the autograd function of use_reentrant=True, which runs its region without
    gradients, to run it with them later."""

    @staticmethod
    def apply(function: Callable[..., Any], preserve_random_state: bool, *args: Any) -> Any:
        with preserve_node_meta(), annotate(_MARK):
            return function(*args)
