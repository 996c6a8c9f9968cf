# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that record gradients, as nodes of autograd's graph in C++.

The call is one node, made by `weft._autograd` (python/autograd), whose backward runs the backward
program. If that program alone does not give the gradients, the backward comes to this module. A
plain call is answered without a Python frame; one that writes, draws or has fallbacks is run by
`training.py`, and then becomes a node. For calls of any other kind, and if weft._autograd was built
for another torch, `training.py` uses a torch.autograd.Function.
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
from weft.compiled.backward import gradients_along
from weft.compiled.gradient_connections import computed_of, parts
from weft.compiled.specialize import Specialized
from weft.compiled.training import Training
from weft.frontend.dtypes import DTYPES
from weft.gradients.derivative_program import Like
from weft.gradients.running_statistics import Statistics
from weft.gradients.saved import Kept, reads_anew


def record_in_cpp(specialized: Specialized) -> bool:
    """Lets a program's calls with gradients be recorded in C++, if they are of the right kind."""
    training = specialized.training
    if training is None or not _is_node(specialized) or not autograd_nodes.are_there():
        return False
    training.step = _step(specialized)
    if not _is_plain(specialized):
        return False
    specialized.core.train(training.step)
    return True


def _is_plain(specialized: Specialized) -> bool:
    """Whether a call only runs the program."""
    training = specialized.training
    return not (
        training.writes
        or training.changing
        or training.statistics
        or training.graph.draws
        or specialized.manifest["fallbacks"]
    )


def _is_node(specialized: Specialized) -> bool:
    """Whether a call returns only results of the program, and the backward reads only its
    arguments."""
    training, wiring = specialized.training, specialized.wiring
    tensors = [each for each in training.sources if isinstance(each, torch.Tensor)]
    return not (
        training.backward is None
        or training.dependent
        or training.backward.manifest["fallbacks"]
        or any(dtype.is_complex for dtype in wiring.dtypes)
        or any(each.is_complex() for each in tensors)
        or any(target.is_complex for target in specialized.lowered.outputs)
        or _has_views(wiring.outputs())
    )


def _has_views(recipe: Any) -> bool:
    """Whether a value has other parts than results, arguments and constants
    (capture/outputs.py)."""
    if not isinstance(recipe, tuple):
        return False
    if recipe and recipe[0] in (VIEW, VALID, SIZED_VIEW):
        return True
    return isinstance(recipe[-1], tuple) and any(map(_has_views, recipe[-1]))


def _step(specialized: Specialized) -> _core.TrainingStep:
    training = specialized.training
    kept, document = training.kept, json.loads(training.graph.graph)
    results = specialized.manifest["entries"]["main"]["results"]
    places = training.differentiable()
    wanted = [number for kind, number in training.reads if kind == "gradient"]
    if training.likes is None:
        shown = [results[number] for number in wanted]
        training.likes = [Like(torch.Size(each["shape"]), DTYPES[each["dtype"]]) for each in shown]
    return _core.TrainingStep(
        backward=training.backward.program,
        wrt=training.wrt,
        saved=kept.through,
        copied=[each in kept.copied for each in kept.through],
        watched=kept.watched,
        moved=[_when_moved(training, n) for n in range(len(training.sources))],
        places=places,
        reads=[_reads(training, number, document) for number in places],
        freed=_freed(training, document),
        cotangents=[places.index(n) if n in places else -1 for n in wanted],
        connected=[
            row
            for number, row in zip(training.outputs, training.connected, strict=True)
            if number in places
        ],
        otherwise=functools.partial(_gradients, training),
        graph=training.graph,
    )


def _freed(training: Training, document: dict[str, Any]) -> list[tuple[list[bool], list[bool]]]:
    """For each kind of what a backward frees, the results that require gradients from which it is
    reached, and the gradients to which it leads."""
    places = training.differentiable()
    if training.saves is None:
        found = parts(document, training.wrt, places) if training.kept.through else []
        every = [True] * len(training.wrt)
        return [([one == other for other in found], every) for one in dict.fromkeys(found)]
    rows = [training.outputs.index(number) for number in places]
    return [
        ([row in its for row in rows], [number in ends for number in training.wrt])
        for its, ends in training.saves.freed
    ]


def _reads(training: Training, number: int, document: dict[str, Any]) -> list[bool]:
    """For each argument of the backward and each tensor that is watched, whether it may be read on
    the way backwards from this result."""
    values = computed_of(document, number)
    outputs, saves = document["outputs"], training.saves

    def may_read(is_input: bool, place: int) -> bool:
        if not is_input and place >= training.count:
            return True
        return (place if is_input else outputs[place]["value"]) in values

    watched = () if saves is None else saves.reads[training.outputs.index(number)]
    return [
        *(may_read(*each) for each in training.kept.through),
        *(each in watched for each in training.kept.watched),
    ]


def _when_moved(training: Training, number: int) -> int:
    """What happens if an input of the graph is given other memory; see Step.h."""
    if reads_anew(training.kept, training.saves, number):
        return 2
    return int(number in training.saves.itself)


@dataclass
class _Node:
    """A node of autograd as the backward needs it, with the attributes of a
    torch.autograd.Function. others, then: as set by `saved.Kept.save`."""

    training: Training
    next_functions: Sequence[tuple[Any, int]]
    saved_tensors: Sequence[torch.Tensor]
    others: Sequence[tuple[int, torch.Tensor, int]]
    then: dict[int, torch.Tensor]
    kept: Kept
    numbers: tuple[int, ...] = ()
    random: torch.Tensor | None = None
    statistics: Statistics | None = None
    chain: None = None
    passed: None = None
    found: dict[int, Any] = field(default_factory=dict)
    paired: Any = None


def _gradients(
    training: Training,
    node: Any,
    saved: Sequence[torch.Tensor],
    inputs: Sequence[tuple[torch.Tensor, int, torch.Tensor]],
    cotangents: Sequence[torch.Tensor | None],
    beside: tuple[torch.Tensor | None, Statistics | None] | None,
) -> Sequence[torch.Tensor | None]:
    """The gradients of `wrt`. node: of the call, in autograd's graph. inputs: each with its version
    in the call, and its memory. beside: the generator's state before the call, and its
    statistics."""
    others = [(number, tensor, version) for number, (tensor, version, _) in enumerate(inputs)]
    then = {number: each for number, (*_, each) in enumerate(inputs)}
    kept, edges = training.kept, node.next_functions
    step = _Node(training, edges, saved, others, then, kept, (), *(beside or (None, None)))
    return gradients_along(step, cotangents)
