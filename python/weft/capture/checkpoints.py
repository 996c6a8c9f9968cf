# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions of torch.utils.checkpoint, whose values the user wants computed again in the backward.

What they call is marked in the traced graph. For a process that traces and ends: they replace
torch's own functions.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils.checkpoint as checkpoint
from torch.fx.traceback import annotate, preserve_node_meta

from weft.capture.signature import Declined
from weft.frontend.walk import CHECKPOINTED, DRAWS_ANEW


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

    signature = inspect.signature(generator)

    @functools.wraps(generator)
    def marked(*args: Any, **kwargs: Any) -> Iterator[None]:
        given = signature.bind(*args, **kwargs).arguments
        with preserve_node_meta(), annotate(_mark(given.get("preserve_rng_state", True))):
            if given.get("context_fn", checkpoint.noop_context_fn) is checkpoint.noop_context_fn:
                # Nobody goes backward in a trace. Torch's hooks of a region in another one leave
                # a no_grad in it that ends outside of Python's sight.
                yield
            else:
                yield from generator(*args, **kwargs)

    return marked


def _mark(preserves_random_state: bool) -> dict[str, bool]:
    return {CHECKPOINTED: True} | ({} if preserves_random_state else {DRAWS_ANEW: True})


class _Region:
    """Stands for the autograd function of use_reentrant=True, which runs its region without
    gradients, to run it with them later. Its results require gradients where an argument that is a
    tensor does, and only there, whatever the region reads besides."""

    @staticmethod
    def apply(function: Callable[..., Any], preserve_random_state: bool, *args: Any) -> Any:
        given = any(isinstance(each, torch.Tensor) and each.requires_grad for each in args)
        if not (given and torch.is_grad_enabled()):
            with torch.no_grad():
                return function(*args)
        with preserve_node_meta(), annotate(_mark(preserve_random_state)):
            results = function(*args)
        for each in results if isinstance(results, tuple) else (results,):
            if isinstance(each, torch.Tensor) and each.is_floating_point():
                if not each.requires_grad:
                    raise Declined(
                        "a result of torch.utils.checkpoint(use_reentrant=True) requires gradients "
                        "and depends on nothing that does"
                    )
        return results
