# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the two programs of a captured call that records gradients."""

from __future__ import annotations

import json
import re
from typing import Any

import torch

from weft import errors
from weft.artifacts.builds import Options
from weft.capture.isolated import call_isolated
from weft.capture.signature import Declined, Signature
from weft.capture.tracing import Captured
from weft.compiled.gradient_connections import connections, has_empty_values, within
from weft.compiled.gradient_order import in_order_of_hooks
from weft.compiled.specialize import Specialized, slot_or_tensor, specialize
from weft.compiled.training import Training, options_of_half
from weft.frontend.fallback import overload_of
from weft.frontend.lowered import InputSource, Lowered, ViewOf
from weft.gradients.derivative_program import Half
from weft.gradients.gradient_graph import GradientGraph
from weft.gradients.running_statistics import statistics_of

_NO_DERIVATIVE = re.compile(
    r"(?:(?P<location>[^\n]*?): )?(?:error: )(?P<reason>\S+ has no derivative)"
)


def specialize_call(
    captured: Captured,
    signature: Signature,
    options: Options,
    gradients: bool,
    deferred: bool,
    apart: bool,
) -> Specialized:
    """The program of a call, with a backward if calls record gradients. deferred: the backward is
    not compiled yet. apart: compiles in a child process first, which leaves the artifact in the
    cache. Raises: as `specialize_training`."""

    def make() -> Specialized:
        if gradients:
            return specialize_training(captured, signature, options, deferred)
        return specialize(captured, signature, options)

    def discard() -> None:
        """The program of a child process is not passed on."""
        make()

    if apart:
        call_isolated(discard, {})
    return make()


def specialize_training(
    captured: Captured, signature: Signature, options: Options, deferred: bool = False
) -> Specialized:
    """Compiles both programs of what was captured. deferred: the backward is not compiled yet.

    The result's `training` is None if no input that requires gradients is read, or no result
    requires any: then it is a program like those without gradients.
    Raises: Declined, with the reason, if gradients cannot be compiled; errors.CompileError.
    """
    lowered = captured.lowered
    document = json.loads(lowered.graph)
    if any(
        each.requires_grad and not each.numel() for each in signature.examples
    ) or has_empty_values(document):
        # A tensor from which nothing is computed is not read, but autograd gives it zeros.
        raise Declined("gradients are wanted, and a tensor has no elements")
    _refuse_aliases(lowered, signature, captured)
    wrt = tuple(
        number
        for number, source in enumerate(lowered.inputs)
        if _tensor(source, signature, captured).requires_grad
    )
    if not wrt:
        _refuse_views(lowered)
    given = any(each.requires_grad for each in signature.examples)
    if not wrt and given and any(dtype.is_floating_point for dtype in lowered.result_dtypes):
        # No element of an argument counts, but autograd connects it.
        raise Declined("gradients are wanted, and it reads nothing that requires them")
    if not wrt:
        return specialize(captured, signature, options)
    wrt = in_order_of_hooks(document, wrt)
    connected = connections(document, wrt)
    for target in lowered.outputs:
        if target.kind == "user" and target.result is not None:
            reached = lowered.reached.get(target.index, ())
            row = connected[target.result]
            connected[target.result] = [x or n in reached for x, n in zip(row, wrt)]
    returned = {target.result for target in lowered.outputs if target.kind == "user"}
    outputs = tuple(
        number
        for number, dtype in enumerate(lowered.result_dtypes)
        if number in returned and dtype.is_floating_point and any(connected[number])
    )
    if not outputs:
        _refuse_views(lowered)
        _refuse_other_results(lowered, connected)
        return specialize(captured, signature, options)
    dependent = _dependent(document, lowered, outputs)
    backward = None
    try:
        if deferred:
            made = specialize(captured, signature, options)
        else:
            own = options_of_half(options, "forward", wrt, outputs)
            made = specialize(captured, signature, own)
            backward = Half(lowered.graph, options_of_half(options, "backward", wrt, outputs))
            _refuse_random_gradients(backward, lowered)
    except errors.CompileError as error:
        if (found := _NO_DERIVATIVE.search(str(error))) is None:
            raise
        raise Declined(
            f"its gradients are not compiled: {found['reason']}",
            found["location"],
            op=found["reason"].split()[0],
        ) from None
    count = len(lowered.result_dtypes)
    made.training = Training(
        wrt,
        outputs,
        backward,
        count,
        made.wiring,
        GradientGraph(lowered.graph, options, made.draws),
        requires=[True] * len(outputs),
        connected=[connected[number] for number in outputs],
        within=dependent,
        statistics=tuple(number for number in statistics_of(document) if number not in wrt),
        copied=tuple(number for number in lowered.copied if number not in wrt),
    )
    return made


def _refuse_views(lowered: Lowered) -> None:
    if any(target.view is not None for target in lowered.outputs):
        raise Declined("gradients are wanted, and of tensors it returns but arguments")


def _refuse_other_results(lowered: Lowered, connected: list[list[bool]]) -> None:
    """Refuses results that autograd would connect although no floating-point result requires
    gradients."""
    for dtype, row in zip(lowered.result_dtypes, connected, strict=True):
        if any(row) and (dtype.is_floating_point or dtype.is_complex):
            raise Declined("gradients are wanted of what it writes alone, or of complex numbers")


def _dependent(
    document: dict[str, Any], lowered: Lowered, outputs: tuple[int, ...]
) -> dict[int, tuple[int, ...]]:
    """As `within`. Raises: Declined, if it cannot tell which results autograd passes through."""
    read = [target for target in lowered.outputs if target.is_read and target.result in outputs]
    if len(outputs) > 1 and any(target.is_complex for target in read):
        # Others are computed from the real and imaginary parts, which are joined only for the user.
        raise Declined("gradients are wanted, and it goes on with complex numbers that it returns")
    found = within(document, outputs, {target.result for target in read})
    for others in found.values():
        if len({document["outputs"][number]["value"] for number in others}) < len(others):
            raise Declined("gradients are wanted, and it goes on with equal results")
    return found


def _is_of_none(view: ViewOf, lowered: Lowered) -> bool:
    return isinstance(view.base, int) and lowered.outputs[view.base].kind == "hidden"


def _refuse_random_gradients(backward: Half, lowered: Lowered) -> None:
    """Refuses an op whose gradient draws random numbers again when the backward repeats it."""
    for entry in backward.manifest["fallbacks"]:
        target, arguments = entry["target"], json.loads(entry["arguments"])
        is_random = torch.Tag.nondeterministic_seeded in overload_of(target).tags
        if is_random and isinstance(arguments, dict) and "gradients" in arguments:
            where = next((f.location for f in lowered.fallbacks if f.target == target), None)
            reason = f"its gradients are not compiled: {target} has no derivative"
            raise Declined(reason, None if where is None else str(where), op=target)


def _tensor(source: InputSource, signature: Signature, captured: Captured) -> torch.Tensor:
    found = slot_or_tensor(source, signature.slots, captured.resolve)
    return signature.examples[found] if isinstance(found, int) else found


def _refuse_aliases(lowered: Lowered, signature: Signature, captured: Captured) -> None:
    if signature.objects:
        raise Declined("gradients are wanted, and an argument is an object that is no pytree")
    for target in lowered.outputs:
        if target.view is not None and _is_of_none(target.view, lowered):
            raise Declined("gradients are wanted, and results share memory that is of none of them")
        view = target.view
        if view is not None and target.is_read and not view.identity:
            base = view.base
            if isinstance(base, int) or _tensor(base, signature, captured).requires_grad:
                # Autograd would lead to the view from what is computed from it.
                raise Declined("gradients are wanted, and it goes on with a view that it returns")
        if target.kind == "input":
            raise Declined("gradients are wanted, and it writes to an argument")
        if target.chosen is not None:
            raise Declined("gradients are wanted of as many rows as a mask chooses")
