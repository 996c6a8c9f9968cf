# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs are judged in forked processes: a change may kill one, and leaves nothing behind."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import random
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch

from capture.corpus import Name
from capture.fuzzer import Judged, Wrong, all_mutations, chosen, fuzz
from capture.mutations import Mutation
from capture.subjects import SUBJECTS

# What Weft imports for its first capture: children inherit it.
_IMPORTED = ("torch._dynamo", "torch.export._trace", "torch._export.non_strict_utils")
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Plan:
    """What is tried. most: mutations of a program, chosen by seed; None for all. captures: the
    share of them after which programs may be captured anew. only: the text of a single mutation.
    timeout: seconds for one mutation."""

    subject: str = "weft"
    seed: int = 0
    most: int | None = None
    captures: float = 0.0
    only: str | None = None
    timeout: float = 30.0

    def mutations(self, program: Name) -> list[Mutation]:
        found = all_mutations(program)
        if self.only is not None:
            return [each for each in found if str(each) == self.only]
        return chosen(found, self.most, f"{self.seed} {program}")

    def may_capture(self, program: Name, mutation: Mutation) -> bool:
        return random.Random(f"{self.seed} {program} {mutation}").random() < self.captures


def prepare() -> None:
    """Ahead of the first fork."""
    for name in _IMPORTED:
        __import__(name)
    torch.set_num_threads(1)


def judge_all(programs: list[Name], plan: Plan, jobs: int) -> Iterator[Judged]:
    """As they are done."""
    prepare()
    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(judge, each, plan) for each in programs]):
            yield future.result()


def judge(program: Name, plan: Plan) -> Judged:
    mutations = plan.mutations(program)
    whole, start = Judged(program), 0
    while True:
        outcome = _run_child(program, plan, plan.subject, mutations[start:])
        if isinstance(outcome, Judged):
            _add(whole, outcome, first=start == 0)
            return whole
        # A child that died tells nothing of what it judged before but what was wrong.
        whole.wrong += outcome.wrong
        whole.tried += max(outcome.at, 0)
        mutation = mutations[start + outcome.at] if outcome.at >= 0 else None
        what = f"the process {outcome.how}"
        if _dies_of(program, plan, mutation):
            whole.wrong.append(Wrong(program, mutation, "a call", what))
        else:
            whole.unclear.append(f"{program} [{mutation}]: {what}, and not again")
        if mutation is None:
            return whole
        start += outcome.at + 1


def _dies_of(program: Name, plan: Plan, mutation: Mutation | None) -> bool:
    """Whether the subject does once more, and eager execution does not."""
    mutations = [] if mutation is None else [mutation]
    again, eager = (_run_child(program, plan, each, mutations) for each in (plan.subject, "eager"))
    return not isinstance(again, Judged) and isinstance(eager, Judged)


def _add(whole: Judged, part: Judged, first: bool) -> None:
    whole.whole, whole.reason = part.whole, part.reason
    whole.tried += part.tried
    whole.captured += part.captured
    whole.answered += part.answered
    whole.unclear += part.unclear
    # Those of the program as it is come once more in each part.
    whole.wrong += [each for each in part.wrong if first or each.mutation is not None]


@dataclass
class _Death:
    """at: the mutation that the child was at, -1 if ahead of the first. how: it ended."""

    at: int
    how: str
    wrong: list[Wrong]


def _run_child(
    program: Name, plan: Plan, subject: str, mutations: list[Mutation]
) -> Judged | _Death:
    reader, writer = _FORK.Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        reader.close()
        _be_child(writer, program, plan, subject, mutations)
    writer.close()
    death = _Death(-1, f"hung for {plan.timeout:.0f} s", [])
    try:
        while reader.poll(plan.timeout):
            message = reader.recv()
            if isinstance(message, Judged):
                return message
            if isinstance(message, Wrong):
                death.wrong.append(message)
            else:
                death.at = message
    except EOFError:
        death.how = "died"
    finally:
        if death.how != "died":
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        reader.close()
    if death.how == "died":
        death.how = f"died ({os.waitstatus_to_exitcode(status)})"
    return death


def _be_child(
    writer: Connection, program: Name, plan: Plan, subject: str, mutations: list[Mutation]
) -> None:
    torch.set_num_threads(1)
    torch.set_warn_always(True)  # lest the first world alone be warned
    faulthandler.disable()
    warnings.resetwarnings()
    warnings.simplefilter("default")

    def told() -> Iterator[Mutation]:
        for number, mutation in enumerate(mutations):
            writer.send(number)
            yield mutation

    def captures(mutation: Mutation) -> bool:
        return plan.may_capture(program, mutation)

    try:
        made: Any = SUBJECTS[subject]()
        writer.send(fuzz(program, made, told(), captures, found=writer.send))
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(0)
