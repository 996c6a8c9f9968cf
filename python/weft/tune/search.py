# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search of one task: what is measured next, and when the search ends."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from weft.tune.learned import LearnedModel, proposed
from weft.tune.records import Record, Records
from weft.tune.task import Candidate, Task

# A share of the whole model's time: a task that cannot save more than that is not searched on.
_WORTH = 0.002
_ENOUGH = 10  # measurements before that is decided


class Measures(Protocol):
    """Something that measures candidates, such as `measuring.Runner`."""

    def measure(self, request: dict[str, Any]) -> dict[str, Any]: ...


class Search:
    """The measurements of a task in order. Each is stored in the records before the next one
    begins.

    trials: the most candidates, with those that the records have already. patience: the search ends
    after this number of candidates in a row that are not faster.
    """

    def __init__(
        self,
        task: Task,
        records: Records,
        runner: Measures,
        identity: tuple[str, str],
        trials: int,
        patience: int,
        rounds: int,
        threads: int,
    ) -> None:
        self.task, self.records, self.runner = task, records, runner
        self.target, self.compiler = identity
        self.trials, self.patience = trials, patience
        self.settings = {"rounds": rounds, "threads": threads}
        self.default_seconds: float | None = None
        self.measured: list[tuple[Candidate, float]] = []
        self._generator = random.Random(task.kernel)

    def run(self) -> Iterator[Record]:
        known = {
            each.steps: each
            for each in self.records.of(self.task.kernel, self.target, self.compiler)
        }
        left = list(self.task.candidates())
        # candidates that the compiler refuses take no time and do not count
        trials = self.trials - sum(_fitting(each) is None for each in known.values())
        disappointments, fastest = 0, float("inf")
        candidate: Candidate | None = self.task.default()
        while candidate is not None:
            record = known.get(candidate.text)
            if record is None:
                if trials <= 0:
                    break
                record = self._measured(candidate)
                self.records.add(record)
                trials -= _fitting(record) is None
                yield record
            left = [each for each in left if each.text != candidate.text]
            if (fitting := _fitting(record)) is not None:
                left = [each for each in left if fitting(each)]
                candidate = self._next(left, fastest)
                continue
            if record.seconds is not None:
                self.measured.append((candidate, record.seconds))
                if self.default_seconds is None:
                    self.default_seconds = record.seconds
            disappointments += 1
            if record.seconds is not None and record.seconds < fastest:
                fastest, disappointments = record.seconds, 0
            candidate = None
            if disappointments < self.patience:
                candidate = self._next(left, fastest)
        yield from self._confirmed()

    def _confirmed(self) -> Iterator[Record]:
        """Measures the fastest candidate again, for longer, until the fastest one stays the same:
        the least of many measurements is usually the luckiest one."""
        default, again = self.task.default().text, set(self._confirmations())
        times = {each.text: (seconds, each) for each, seconds in self.measured}
        while times:
            seconds, candidate = min(times.values(), key=lambda each: each[0])
            if candidate.text in again or candidate.text == default:
                return
            again.add(candidate.text)
            record = self._measured(candidate, times=4)
            self.records.add(record)
            yield record
            if record.seconds is None:
                del times[candidate.text]
            else:
                times[candidate.text] = (record.seconds, candidate)

    def _confirmations(self) -> list[str]:
        """The schedules that an earlier run has already measured again."""
        rows = self.records.all_of(self.task.kernel, self.target, self.compiler)
        texts = [row.steps for row in rows]
        return [text for text in texts if texts.count(text) > 1]

    def _next(self, left: list[Candidate], fastest: float) -> Candidate | None:
        if not left:
            return None
        model = LearnedModel(self.measured)
        times = model.seconds(left)
        if times is not None and len(self.measured) >= _ENOUGH:
            gain = max(0.0, 1 - min(times) / fastest) * self.task.share
            if gain < _WORTH and self.task.share < 1:
                return None
        return proposed(left, self.measured, model, self._generator)

    def _measured(self, candidate: Candidate, times: int = 1) -> Record:
        settings = {**self.settings, "rounds": self.settings["rounds"] * times}
        answer = self.runner.measure({**self.task.request(candidate), **settings})
        seconds = answer.get("seconds")
        if seconds is not None and self.default_seconds is not None:
            # The ratio comes from alternating runs of both, so that it holds whatever else the
            # machine did.
            seconds = answer["ratio"] * self.default_seconds
        return Record(
            self.task.kernel,
            self.target,
            self.compiler,
            candidate.text,
            answer["outcome"],
            seconds,
            answer.get("note", ""),
        )


def _fitting(record: Record) -> Callable[[Candidate], bool] | None:
    """Which other candidates the compiler does not refuse for the reason that it named when it
    refused this one; None for a candidate that it did not refuse."""
    if record.outcome != "failed":
        return None
    if found := re.search(r"expected (rows|groups|panels) of at most (\d+)", record.note):
        name, most = found[1], int(found[2])
        return lambda each: each.numbers.get(name, 0) <= most
    if found := re.search(r"expected chunk to divide (\d+)", record.note):
        whole = int(found[1])
        return lambda each: whole % each.numbers.get("chunk", 1) == 0
    if found := re.search(r"expected chunk (\d+), as", record.note):
        chunk = int(found[1])
        return lambda each: each.numbers.get("chunk") == chunk
    if found := re.search(r"expected rows to divide the strip of (\d+)", record.note):
        strip = int(found[1])
        return lambda each: strip % each.numbers.get("rows", 1) == 0
    return None
