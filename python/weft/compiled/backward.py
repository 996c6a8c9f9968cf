# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backward of a call: gradients along the cotangents that autograd brings to its node.

They are computed by the backward program, if that gives what autograd would; by the programs of the
gradients' graph, if they are to be differentiated again; and by PyTorch otherwise. `ctx` is the
node, of a torch.autograd.Function (`training.py`) or its equivalent in C++ (`recorded_calls.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from weft.compiled.backward_segments import AsAWhole, Gradients, InSegments
from weft.compiled.dependent_results import with_steps
from weft.gradients.derivative_program import (
    are_finite,
    cotangent,
    further,
    is_run,
    is_watched,
    wanted_of,
)
from weft.gradients.gradient_graph import Cotangents, Derivative
from weft.gradients.saved import as_read, inputs_of, moved_to, paired_once, random_state
from weft.gradients.through_saved import Call, Passed, added, prepare, through_saved

if TYPE_CHECKING:
    from weft.compiled.training import Training


def gradients_along(
    ctx: Any, cotangents: Sequence[torch.Tensor | None]
) -> Sequence[torch.Tensor | None]:
    """The gradients of all of `wrt`."""
    # Autograd also comes here from a later call whose gradient of a result it does not connect with
    # the loss. What is saved may be gone by then, and is not read.
    is_given = any(each is not None for each in cotangents)
    none = [None] * len(ctx.training.wrt)
    found = _of_results(ctx, cotangents) if is_given else none
    return with_steps(ctx, found) if ctx.training.dependent else found


def _of_results(
    ctx: Any, cotangents: Sequence[torch.Tensor | None]
) -> Sequence[torch.Tensor | None]:
    """The gradients along the cotangents of the node's own results."""
    training: Training = ctx.training
    given = dict.fromkeys(training.outputs)
    given.update(zip(training._places, cotangents))
    ways = [given[n] is not None for n in training.outputs]
    kept = paired_once(ctx, training.reads)
    anew = moved_to(ctx, kept, training.saves)
    if training.backward is None or anew:
        training.asked = True
        with random_state(ctx.random):
            inputs = inputs_of(ctx, kept)
            gradients = training.by_meaning(inputs, given, ctx.statistics, anew)
        return _or_zeros(ctx, gradients, training.reached_from(ways), training.edges(ctx))
    if torch.is_grad_enabled() or is_watched(cotangents):
        edges = training.edges(ctx)
        gradients = _further(ctx, {n: g for n, g in given.items() if g is not None}, edges)
        gradients = _or_zeros(ctx, gradients, training.reached_from(ways), edges)
    elif any(each is not None for each in cotangents[len(training._places) :]):
        return _joined(ctx, given, cotangents[len(training._places) :], ways)
    else:
        # The cotangents come last.
        read = zip(training._cotangents, training.likes, strict=True)
        saved = [
            each
            for (kind, _), each in as_read(ctx, kept, training.saves).items()
            if kind != "gradient"
        ]
        arguments = [*saved, *[cotangent(given[n], like) for n, like in read]]
        gradients = training.backward.run(arguments)
        if not all(ways):
            with random_state(ctx.random):
                all_inputs = partial(inputs_of, ctx, kept)
                gradients = training.settled(gradients, all_inputs, given, ctx.statistics)
    return training.chosen(gradients, ways)


def _or_zeros(
    ctx: Any,
    gradients: Sequence[torch.Tensor | None],
    reached: Sequence[bool],
    edges: Sequence[Any],
) -> Sequence[torch.Tensor | None]:
    """`gradients`, with zeros for inputs that autograd reaches although the results do not depend
    on them."""
    training: Training = ctx.training
    missing = [
        place
        for place, (gradient, is_so, edge) in enumerate(zip(gradients, reached, edges, strict=True))
        if gradient is None and is_so and is_run(edge)
    ]
    if not missing:
        return gradients
    inputs, found = inputs_of(ctx, paired_once(ctx, training.reads)), list(gradients)
    for place in missing:
        found[place] = torch.zeros_like(inputs[training.wrt[place]])
    return found


def in_segments(ctx: Any, cotangents: Sequence[torch.Tensor | None]) -> Gradients:
    """Gradients that are computed as they are asked for, if programs alone compute them."""
    training: Training = ctx.training
    segments, count = ctx.chain.segments, len(training._places)
    is_plain = (
        not torch.is_grad_enabled()
        and not is_watched(cotangents)
        and all((each is None) == (number >= count) for number, each in enumerate(cotangents))
    )
    if not is_plain or segments.reason:
        return AsAWhole(segments, gradients_along(ctx, cotangents))
    given = dict(zip(training._places, cotangents))
    kept = paired_once(ctx, training.reads)
    if moved_to(ctx, kept, training.saves):
        return AsAWhole(segments, gradients_along(ctx, cotangents))
    kept = as_read(ctx, kept, training.saves)
    for number, like in zip(training._cotangents, training.likes, strict=True):
        kept["gradient", number] = cotangent(given.get(number), like)
    reached = training.reached_from([number in given for number in training.outputs])
    if segments.compared:
        return InSegments(segments, kept, reached)
    whole = training.backward.run([kept[read] for read in training.reads])
    segments.compare(kept, whole, [each for each in cotangents if each is not None])
    return AsAWhole(segments, [x if is_so else None for x, is_so in zip(whole, reached)])


def _further(
    ctx: Any, used: dict[int, torch.Tensor], edges: Sequence[Any]
) -> Sequence[torch.Tensor | None]:
    """The gradients along the cotangents `used` as functions of these and of the inputs. They are
    computed from saved values if autograd has been shown these."""
    training: Training = ctx.training
    kept = paired_once(ctx, training.reads)
    inputs = inputs_of(ctx, kept)
    if _has_other_statistics(ctx, inputs):
        with random_state(ctx.random):
            return training.by_meaning(inputs, used, ctx.statistics)
    if is_watched((*inputs, *used.values())) or not torch.is_grad_enabled() or not used:
        with random_state(ctx.random):
            return further(training.graph, inputs, used, training.wrt, edges)
    wanted = wanted_of(training.graph, used, training.wrt, edges)
    derivative = Derivative(wanted, tuple(used))
    tensors = [*inputs, *used.values()]
    if ctx.passed is not None:
        exposed = [x for read, x in kept.items() if read in training.halves.exposed]
        call = Call(exposed, ctx.random, ctx.passed)
        found = through_saved(training.halves, derivative, tensors, call)
        if found is not None:
            return [dict(zip(wanted, found, strict=True)).get(number) for number in training.wrt]
    with random_state(ctx.random):
        found = further(training.graph, inputs, used, training.wrt, edges)
    with random_state(ctx.random):
        prepare(training.halves, derivative, tensors)
    return found


def _has_other_statistics(ctx: Any, inputs: Sequence[torch.Tensor]) -> bool:
    return ctx.statistics is not None and ctx.statistics.are_others(inputs)


def _joined(
    ctx: Any,
    cotangents: Cotangents,
    shown: Sequence[torch.Tensor | None],
    ways: Sequence[bool],
) -> list[torch.Tensor | None]:
    """The gradients along cotangents of the results and of what autograd was shown (`shown`)."""
    training: Training = ctx.training
    passed: Passed = ctx.passed.now()
    kept = paired_once(ctx, training.reads)
    inputs = inputs_of(ctx, kept)
    kept = {read: each for read, each in kept.items() if each is not None}
    likes = dict(zip(training._cotangents, training.likes, strict=True))
    gradients = passed.rest(inputs, kept, {**cotangents}, likes, shown)
    if not are_finite(gradients) or _has_other_statistics(ctx, inputs):
        # As in `settled`, where zeros stand for missing cotangents.
        with random_state(ctx.random):
            others = training.by_meaning(inputs, cotangents, ctx.statistics)
            gradients = added(others, passed.by_meaning(training.wrt))
    reached = training.reached_from(ways)
    return [
        each if is_so or number in passed.reached else None
        for number, each, is_so in zip(training.wrt, gradients, reached, strict=True)
    ]
