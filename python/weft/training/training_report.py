# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a training program saves for its backward and why, and what the backward recomputes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from weft.artifacts.builds import lower_to
from weft.compiled.specialize import Specialized
from weft.frontend.dtypes import DTYPES
from weft.ir import Module
from weft.ir.functions import Function
from weft.ir.values import Operation, Value

_VIEWS = frozenset({"reshape", "broadcast_in_dim", "relayout", "constant", "iota"})
_NEVER_AGAIN = frozenset({"torch_fallback", "grouped_dot", "multi_dot", "winograd_conv"})


@dataclass(frozen=True)
class SavedTensor:
    """A tensor that is saved. type: such as `f32[3, 4]`. bytes: its size. op: the one that computes
    it. line: the user's as (file, line), where it is known."""

    type: str
    bytes: int
    op: str
    line: tuple[str, int] | None
    reason: str


@dataclass(frozen=True)
class TrainingSummary:
    """What a training program saves. recomputed: the ops that the backward computes again, each
    with the user's line, and how many there are."""

    saved: list[SavedTensor]
    recomputed: dict[tuple[str, tuple[str, int] | None], int]


def summary_of(program: Specialized) -> TrainingSummary:
    """The summary of a program that trains."""
    training = program.training
    build = program.build
    module = Module.parse(lower_to(build.graph, "partitioned", build.options))
    forward, backward = module["forward"], module["backward"]
    saved = []
    arguments = training.backward.manifest["entries"]["main"]["arguments"]
    for argument, (kind, number) in zip(arguments, training.reads, strict=True):
        if kind not in ("result", "saved"):
            continue
        value = forward.returns[number + (training.count if kind == "saved" else 0)]
        size = DTYPES[argument["dtype"]].itemsize
        for extent in argument["shape"]:
            size *= extent
        op = value.producer
        reason = "a result, which is there anyway" if kind == "result" else _reason(op)
        name = op.name if op is not None else "argument"
        text = f"{argument['dtype']}{argument['shape']}"
        saved.append(SavedTensor(text, size, name, _line(op), reason))
    return TrainingSummary(saved, _recomputed(backward))


def _reason(op: Operation | None) -> str:
    if op is None:
        return "an argument that may have changed by then"
    if op.name in _NEVER_AGAIN:
        return "it is never computed again"
    return "keeping it costs less than computing it again"


def _recomputed(backward: Function) -> dict[tuple[str, tuple[str, int] | None], int]:
    """Counts the ops that depend on no cotangent, by name and the user's line."""
    dependent: set[Value] = {
        value
        for number, value in enumerate(backward.params)
        if backward.param_attributes(number)["weft.name"].startswith("gradient")
    }
    found: Counter[tuple[str, tuple[str, int] | None]] = Counter()
    for op in backward.body.ops[:-1]:
        if any(operand in dependent for operand in op.operands):
            dependent.update(op.results)
        elif op.operands and op.name not in _VIEWS:
            found[op.name, _line(op)] += 1
    return dict(found)


def _line(op: Operation | None) -> tuple[str, int] | None:
    where = None if op is None else op.location
    return None if where is None else (where.file, where.line)
