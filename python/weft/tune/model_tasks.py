# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The distinct kernels of a model as tasks, which vary the numbers of contractions' schedules."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch

from weft import errors
from weft.artifacts.builds import Build, Options
from weft.artifacts.compared import compared_in_module
from weft.te.targets import vector_registers
from weft.tune.access import Features, contraction_of
from weft.tune.kernel_text import KernelText, kernels_of
from weft.tune.task import Candidate, Task

NAMES = ("rows", "groups", "chunk", "panels")
_OF_OTHER_PARTS = 0.02  # a share of the time for each time that parts are larger or smaller
_MOST_CALLS = 3  # calls of a model until one of its programs answers


def varied(schedule: dict[str, int]) -> bool:
    """Whether a kernel's schedule, as the manifest has it, has numbers that may be fixed."""
    return all(name in schedule for name in NAMES) and not schedule.get("matrix_unit")


class KernelTask(Task):
    """A kernel of a model. schedule: the numbers that the compiler chose."""

    def __init__(self, kernel: KernelText, schedule: dict[str, int], share: float) -> None:
        self.name, self.kernel, self.share = kernel.name, kernel.digest, share
        self.text, self.schedule = kernel, schedule
        self._candidates: list[Candidate] | None = None

    def default(self) -> Candidate:
        numbers = {name: self.schedule[name] for name in NAMES} if varied(self.schedule) else {}
        if not numbers:
            return Candidate("", {})
        return Candidate("", numbers, self._cycles(numbers), self._access(numbers))

    def _access(self, numbers: dict[str, int]) -> Features:
        contraction = contraction_of(self.text.module)
        return contraction.features(numbers, self.schedule["lanes"]) if contraction else ()

    @cached_property
    def _tiles(self) -> dict[tuple[int, int], int]:
        """The cycles of the tiles that the compiler compares, by rows and groups."""
        options = Options(isa=self.text.isa)
        return {
            (int(tile[1]), int(tile[2])): cycles
            for each in compared_in_module(self.text.module, options)
            for fields, cycles in each.cycles.items()
            if (tile := re.fullmatch(r"rows=(\d+) groups=(\d+)", fields))
        }

    def _cycles(self, numbers: dict[str, int]) -> float:
        """The predicted cycles of a call. Tiles that the compiler does not compare come after those
        that it does, the fuller ones first. Chunks and panels other than the chosen ones are ranked
        lower, the further they are from these."""
        rows, groups = numbers["rows"], numbers["groups"]
        worst = max(self._tiles.values(), default=1)
        emptier = vector_registers() / (rows * groups)
        cycles = self._tiles.get((rows, groups), worst * (1 + emptier))
        for name in ("chunk", "panels"):
            ratio = numbers[name] / self.schedule[name]
            cycles *= 1 + _OF_OTHER_PARTS * (max(ratio, 1 / ratio) - 1)
        return cycles

    def candidates(self) -> list[Candidate]:
        if self._candidates is None:
            self._candidates = self._made()
        return self._candidates

    def _made(self) -> list[Candidate]:
        """All tiles that fit into the registers. The compiler refuses those that do not fit the
        shape; the search then leaves out others that it would refuse for the same reason."""
        if not varied(self.schedule):
            return []
        chosen, own = [], self.schedule["chunk"]
        parts = {own // n for n in (1, 2, 3, 4) if own % n == 0} | {own * n for n in (2, 3, 4)}
        for numbers in itertools.product(range(1, 15), range(1, 7), sorted(parts), (1, 2, 4, 8)):
            given = dict(zip(NAMES, numbers))
            rows, groups = given["rows"], given["groups"]
            if rows * groups + groups + 1 > vector_registers():
                continue
            if given != {name: self.schedule[name] for name in NAMES}:
                text = ",".join(f"{name}={value}" for name, value in given.items())
                chosen.append(Candidate(text, given, self._cycles(given), self._access(given)))
        return sorted(chosen, key=lambda each: each.predicted)

    def request(self, candidate: Candidate) -> dict[str, Any]:
        return {
            **dict.fromkeys(("module", "incumbent", "reference"), self.text.module),
            "schedules": {"module": candidate.text},
            "isa": self.text.isa,
            "weights": list(self.text.weights),
            "inputs": list(self.text.inputs),
            "results": list(self.text.results),
        }


def tasks_of_model(
    model: Callable[..., Any], inputs: tuple[Any, ...], named: dict[str, Any] | None = None
) -> list[Task]:
    """The distinct kernels of a module or function, or of what weft.compile made of one, for calls
    with the arguments `inputs` and the keyword arguments `named`; those that take the most time
    come first.

    Raises: errors.NotCompiledError, if PyTorch runs such calls.
    """
    from weft.compiled.api import compile, profile, stats
    from weft.compiled.module import callable_of

    named = named or {}
    compiled = model if callable_of(model) is not None else compile(model, capture="export")
    with torch.no_grad():
        for _ in range(_MOST_CALLS):
            compiled(*inputs, **named)
            if stats(compiled)["hits"]:
                break
        else:
            why = "; ".join(stats(compiled)["breaks"]) or "no call was answered by a program"
            raise errors.NotCompiledError(f"the model is not compiled: {why}")
        measured = profile(compiled, *inputs, repeats=3, **named)
    build = callable_of(compiled).face.programs.latest().build
    seconds: dict[str, float] = {}
    for each in measured.kernels:
        seconds[each.kernel] = seconds.get(each.kernel, 0.0) + each.least
    return tasks_of_build(build, seconds)


def tasks_of_build(build: Build, seconds: dict[str, float]) -> list[Task]:
    """The kernels of a program as tasks. seconds: the time of all calls of each kernel, by name."""
    calls = json.loads(build.artifact.manifest)["entries"]["main"]["calls"]
    schedules = {each["kernel"]: each["schedule"] for each in calls if "kernel" in each}
    total = sum(seconds.values()) or 1.0
    found: dict[str, KernelTask] = {}
    for kernel in kernels_of(build.graph, build.options):
        share = seconds.get(kernel.name, 0.0) / total
        if kernel.digest in found:
            found[kernel.digest].share += share
        else:
            schedule = schedules.get(kernel.name, {})
            found[kernel.digest] = KernelTask(kernel, schedule, share)
    return sorted(found.values(), key=lambda each: -each.share)
