# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that record gradients, answered without a Python frame.

The plain case of `training.py` in C++: the call is one node of autograd's graph, made by
`weft._autograd` (python/autograd), which runs the backward program. Its backward comes here where
that program alone does not give the gradients. Calls of any other kind stay with `training.py`, and
so do all where weft._autograd was built for another torch than this one.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from weft import _core
from weft.capture.outputs import SIZED_VIEW, VALID, VIEW
from weft.compiled import autograd_nodes
from weft.compiled.gradient_connections import parts
from weft.compiled.specialize import Specialized
from weft.compiled.training import Training, gradients_along
from weft.frontend.dtypes import DTYPES
from weft.gradients.derivative_program import Like


def record_in_cpp(specialized: Specialized) -> bool:
    """Lets the calls of a program with gradients be recorded in C++, if they are of that kind."""
    if specialized.training is None or not _is_plain(specialized) or not autograd_nodes.are_there():
        return False
    specialized.core.train(_step(specialized))
    return True


def _is_plain(specialized: Specialized) -> bool:
    """Whether a call has nothing but a program's results, and the backward only its arguments."""
    training, wiring = specialized.training, specialized.wiring
    tensors = [each for each in training.sources if isinstance(each, torch.Tensor)]
    return not (
        training.backward is None
        or training.dependent
        or training.writes
        or training.changing
        or training.statistics
        or training.graph.draws
        or specialized.manifest["fallbacks"]
        or training.backward.manifest["fallbacks"]
        or any(dtype.is_complex for dtype in wiring.dtypes)
        or any(each.is_complex() for each in tensors)
        or any(target.is_complex for target in specialized.lowered.outputs)
        or _has_views(wiring.outputs())
    )


def _has_views(recipe: Any) -> bool:
    """Whether a value has more than results, arguments and constants (capture/outputs.py)."""
    if not isinstance(recipe, tuple):
        return False
    if recipe and recipe[0] in (VIEW, VALID, SIZED_VIEW):
        return True
    return isinstance(recipe[-1], tuple) and any(map(_has_views, recipe[-1]))


def _step(specialized: Specialized) -> _core.TrainingStep:
    training = specialized.training
    results = specialized.manifest["entries"]["main"]["results"]
    places = training.differentiable()
    wanted = [number for kind, number in training.reads if kind == "gradient"]
    if training.likes is None:
        shown = [results[number] for number in wanted]
        training.likes = [Like(torch.Size(each["shape"]), DTYPES[each["dtype"]]) for each in shown]
    return _core.TrainingStep(
        backward=training.backward.program,
        wrt=training.wrt,
        saved=training.kept.through,
        beside=training.kept.beside,
        places=places,
        parts=parts(json.loads(training.graph.graph), training.wrt, places),
        cotangents=[places.index(n) if n in places else -1 for n in wanted],
        connected=[
            row
            for number, row in zip(training.outputs, training.connected, strict=True)
            if number in places
        ],
        otherwise=functools.partial(_gradients, training),
        graph=training.graph,
    )


@dataclass
class _Node:
    """What the backward asks a node of autograd for, as torch.autograd.Function has it. others: as
    `saved.Kept.save` leaves them."""

    training: Training
    next_functions: Sequence[tuple[Any, int]]
    saved_tensors: Sequence[torch.Tensor]
    others: Sequence[tuple[int, torch.Tensor, int]]
    chain: None = None
    random: None = None
    statistics: None = None
    passed: None = None
    found: dict[int, Any] = field(default_factory=dict)
    paired: Any = None


def _gradients(
    training: Training,
    node: Any,
    saved: Sequence[torch.Tensor],
    others: Sequence[tuple[int, torch.Tensor, int]],
    cotangents: Sequence[torch.Tensor | None],
) -> Sequence[torch.Tensor | None]:
    """Of `wrt`. node: of the call, as autograd's graph has it."""
    return gradients_along(_Node(training, node.next_functions, saved, others), cotangents)
