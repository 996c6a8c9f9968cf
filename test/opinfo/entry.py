# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Judges the calls of one entry: by PyTorch, by programs, compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import torch

from opinfo.calls import Call, Ran, copies, run
from opinfo.judge import Wrong, compare
from opinfo.programs import RunsEagerly, Traced, compiled, traced
from opinfo.samples import Choice, Entry, calls_of
from opinfo.unspecified import UNSPECIFIED
from weft import errors

_MOST_CALLS = 48
_MOST_NODES = 400


class Verdict(StrEnum):
    """REFUSED: PyTorch raises, and so does Weft."""

    PASS = "PASS"
    EAGER = "EAGER"
    WRONG = "WRONG"
    CRASH = "CRASH"
    REFUSED = "REFUSED"


@dataclass
class Judged:
    number: int
    label: str
    verdict: Verdict
    why: str = ""


@dataclass
class Step:
    """What is done next, and may end the process. by_torch: PyTorch alone runs."""

    numbers: list[int]
    by_torch: bool = False


@dataclass
class _Pending:
    """A call that PyTorch has answered and whose program is to be run."""

    number: int
    program: Traced
    eager: Ran
    reasons: list[str] = field(default_factory=list)


def judge(
    entry: Entry,
    choice: Choice,
    known: Set[int] = frozenset(),
    alone: bool = False,
) -> Iterator[Step | Judged]:
    """known: numbers of calls that are judged already. alone: each call gets a program of its own,
    so that the one that ends the process can be told."""
    calls = calls_of(entry, choice)
    waiting: list[_Pending] = []
    for number, call in enumerate(calls):
        if number in known:
            continue
        yield Step([number], by_torch=True)
        eager = run(call.on, copies(call.tensors))
        yield Step([number])
        try:
            program = traced(call)
        except RunsEagerly as why:
            yield _of_eager(number, call, eager, str(why))
            continue
        except Exception as error:  # a bug of ours, which costs speed alone
            yield _of_eager(number, call, eager, f"bug: {type(error).__name__}: {error}")
            continue
        reasons = [f"{each.target}: {each.reason}" for each in program.lowered.fallbacks]
        pending = _Pending(number, program, eager, reasons)
        if alone or program.random or eager.error is not None:
            yield from _judge_together([pending], entry)
            continue
        waiting.append(pending)
        if len(waiting) == _MOST_CALLS or sum(p.program.size for p in waiting) > _MOST_NODES:
            yield from _judge_together(waiting, entry)
            waiting = []
    if waiting:
        yield from _judge_together(waiting, entry)


def _of_eager(number: int, call: Call, eager: Ran, why: str) -> Judged:
    verdict = Verdict.EAGER if eager.error is None else Verdict.REFUSED
    return Judged(number, call.label, verdict, why)


def _judge_together(pending: Sequence[_Pending], entry: Entry) -> Iterator[Step | Judged]:
    yield Step([each.number for each in pending])
    try:
        runs = _run_programs(pending)
    except _Apart as why:
        if len(pending) > 1:
            middle = len(pending) // 2
            yield from _judge_together(pending[:middle], entry)
            yield from _judge_together(pending[middle:], entry)
            return
        (each,) = pending
        yield _of_eager(each.number, each.program.call, each.eager, str(why))
        return
    for each, own in zip(pending, runs, strict=True):
        yield _judged(entry, each, own)


def _judged(entry: Entry, pending: _Pending, runs: list[Ran]) -> Judged:
    call, eager = pending.program.call, pending.eager
    judged = Judged(pending.number, call.label, Verdict.PASS)
    try:
        for own in runs:
            if type(eager.error) is not type(own.error):
                raise Wrong(f"{_outcome(own)} instead of {_outcome(eager)}")
            if eager.error is not None:
                judged.verdict = Verdict.REFUSED
                return judged
            compare(entry.op, call, eager, own, entry.op in UNSPECIFIED)
    except Wrong as what:
        judged.verdict, judged.why = Verdict.WRONG, str(what)
        return judged
    if pending.reasons:
        judged.verdict, judged.why = Verdict.EAGER, pending.reasons[0]
    return judged


def _outcome(ran: Ran) -> str:
    if ran.error is None:
        return "a value"
    return f"{type(ran.error).__name__} ({str(ran.error).partition(chr(10))[0]})"


class _Apart(Exception):
    """Calls of one program that have to be told apart, or PyTorch runs the only one."""


def _run_programs(pending: Sequence[_Pending]) -> list[list[Ran]]:
    """Two runs of each: the second finds what the first has left in memory.

    Raises: _Apart.
    """
    try:
        specialized = compiled([each.program for each in pending])
    except errors.CompileError as error:
        raise _Apart(f"bug: does not compile: {str(error).partition(chr(10))[0]}") from None

    def call(tensors: list[torch.Tensor]) -> tuple[bool, Any]:
        return specialized.core.call(tuple(tensors), {})

    def run_all() -> list[Ran]:
        tensors = [copies(each.program.call.tensors) for each in pending]
        ran = run(call, [tensor for some in tensors for tensor in some])
        if ran.error is not None:
            if len(pending) > 1:
                raise _Apart("a call raises")
            return [Ran(tensors[0], error=ran.error)]
        answered, value = ran.value
        if not answered:
            raise _Apart(f"the program declines: {value}")
        return [Ran(some, each) for some, each in zip(tensors, value, strict=True)]

    return [list(both) for both in zip(run_all(), run_all(), strict=True)]
