# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes random programs of tensors as Python code.

A program grows line by line, together with its runs: as it is, in float64, and in float64 with
random rounding errors in every line. Values on which all runs agree are exact. Step functions such
as floor are applied only to exact values.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import random_ops  # noqa: F401  fills OPS
import torch
import torch.nn.functional as F
from random_lines import FLOATS, INTEGERS, OPS, Draw, Line
from random_runs import LAYOUTS, Argument, Run, is_short, same, share_memory, written

MOST_ELEMENTS = 1 << 13
SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33)
ROUNDED_RUNS = 3
_TRIES = 3  # for each line, since not every op finds operands


@dataclass
class Program:
    """source: the text of a function named `program`. lines: those of its body, with their
    targets."""

    arguments: list[Argument]
    lines: list[tuple[str | None, Line]]
    results: list[str]
    runs: list[Run] = field(repr=False)

    @property
    def source(self) -> str:
        body = [
            written(line, False) if target is None else f"{target} = {written(line, False)}"
            for target, line in self.lines
        ]
        names = ", ".join(argument.name for argument in self.arguments)
        returned = ", ".join(self.results)
        return "\n    ".join([f"def program({names}):", *body, f"return ({returned},)"]) + "\n"

    def function(self) -> Callable[..., tuple]:
        name = f"<random program {abs(hash(self.source))}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        namespace: dict[str, Any] = {"torch": torch, "F": F}
        exec(compile(self.source, name, "exec"), namespace)
        return namespace["program"]

    def make_arguments(self) -> list[torch.Tensor]:
        return [argument.make() for argument in self.arguments]


class Writer:
    """A program that is being written."""

    def __init__(self) -> None:
        self.arguments: list[Argument] = []
        self.lines: list[tuple[str | None, Line]] = []
        self.values: list[str] = []  # the values of lines
        self.runs = [Run(False), Run(True)]
        self.runs += [Run(True, torch.Generator().manual_seed(i)) for i in range(ROUNDED_RUNS)]

    # Methods for ops.

    def value(self, name: str) -> torch.Tensor:
        return self.runs[0].names[name]

    def is_exact(self, name: str) -> bool:
        value = self.value(name)
        if not value.is_floating_point():
            return True
        return self._exact_operand(name) and bool(is_short(value.double()).all())

    def pick(
        self, draw: Draw, fits: Callable[[torch.Tensor], bool], exact: bool = False
    ) -> str | None:
        names = [*(argument.name for argument in self.arguments), *self.values]
        names = [each for each in names if fits(self.value(each))]
        if exact:
            names = [each for each in names if self.is_exact(each)]
        # Recent values are chosen more often than old ones: long chains find more faults than wide
        # programs.
        young = names[-3:]
        return draw.choice([*young, *names]) if names else None

    def pick_pair(
        self,
        draw: Draw,
        fits: Callable[[torch.Tensor], bool],
        exact: bool = False,
        beside: str | None = None,
    ) -> tuple[str, str] | None:
        """Two values whose shapes broadcast, also with that of `beside`."""
        shapes = [] if beside is None else [self.value(beside).shape]

        def broadcasts(*tensors: torch.Tensor) -> bool:
            try:
                torch.broadcast_shapes(*shapes, *(tensor.shape for tensor in tensors))
            except RuntimeError:
                return False
            return True

        first = self.pick(draw, lambda each: fits(each) and broadcasts(each), exact)
        if first is None:
            return None
        value = self.value(first)
        second = self.pick(draw, lambda each: fits(each) and broadcasts(value, each), exact)
        return None if second is None else (first, second)

    def argument(
        self, draw: Draw, shape: tuple[int, ...], dtype: torch.dtype, special: bool = False
    ) -> str:
        name, layout, seed = f"x{len(self.arguments)}", draw.choice(LAYOUTS), draw.integer(0, 99)
        return self._give(Argument(name, shape, dtype, layout, seed, special=special))

    def places(self, draw: Draw, shape: tuple[int, ...], below: int) -> str:
        name, seed = f"x{len(self.arguments)}", draw.integer(0, 99)
        return self._give(Argument(name, shape, torch.int64, "contiguous", seed, below))

    def _give(self, argument: Argument) -> str:
        self.arguments.append(argument)
        for run in self.runs:
            run.give(argument)
        return argument.name

    # Growing the program.

    def grow(self, draw: Draw) -> None:
        """Adds a line, if the drawn op finds operands and PyTorch accepts the line."""
        count = len(self.arguments)
        line = draw.choice(OPS)(self, draw)
        target = f"v{len(self.values)}" if line is not None and not line.changes else None
        if line is None or not self._accepts(target, line):
            self._forget_arguments(count)
            return
        eager, double, *rounded = self.runs
        eager.line(target, line)
        double.line(target, line)
        result = target or line.operands[0]
        mine, exactly = self.value(result), double.names[result]
        floats = mine.is_floating_point()
        eps = torch.finfo(mine.dtype).eps if floats else 0.0
        of_operands = [self._exact_operand(name) for name in line.operands]
        for run in rounded:
            if not line.arithmetic:
                run.line(target, line)
                continue
            exact = self._exact_elements(mine, exactly) if floats else mine
            if line.by_chance or not all(of_operands):
                exact = torch.zeros(mine.shape, dtype=torch.bool)
            run.rounded(target, line, eps, exact)
        self.lines.append((target, line))
        if target is not None:
            self.values.append(target)

    @staticmethod
    def _exact_elements(value: torch.Tensor, double: torch.Tensor) -> torch.Tensor:
        if value.dtype != torch.float64:
            return same(value.double(), double)
        return is_short(value)  # there is nothing to compare it with

    def _exact_operand(self, name: str) -> bool:
        value, *others = (run.names[name] for run in self.runs)
        return all(bool(same(value.double(), other.double()).all()) for other in others)

    def _accepts(self, target: str | None, line: Line) -> bool:
        """Whether PyTorch accepts the line, tried on copies."""
        trial = Run(False)
        trial.names.update(self.runs[0].names)
        if line.changes:
            operand = self.value(line.operands[0])
            if _overlaps(operand) or any(
                share_memory(operand, self.value(each)) for each in line.operands[1:]
            ):
                return False
            trial.names[line.operands[0]] = operand.clone()
        try:
            trial.line(target, line)
        except (RuntimeError, IndexError, ValueError):
            return False
        result = trial.names[target or line.operands[0]]
        return isinstance(result, torch.Tensor) and result.numel() <= MOST_ELEMENTS

    def _forget_arguments(self, count: int) -> None:
        for argument in self.arguments[count:]:
            for run in self.runs:
                del run.names[argument.name]
        del self.arguments[count:]

    def finished(self, draw: Draw) -> Program:
        """The program. It returns the values that no line reads, and one more."""
        read = {name for _, line in self.lines for name in line.operands}
        results = [name for name in self.values if name not in read]
        others = [name for name in self.values if name in read]
        if others:
            results.append(draw.choice(others))
        return Program(self.arguments, self.lines, results or [self.arguments[0].name], self.runs)


def _overlaps(tensor: torch.Tensor) -> bool:
    return any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride()))


def random_program(draw: Draw, most_lines: int) -> Program:
    writer = Writer()
    for _ in range(draw.integer(1, 3)):
        shape = [draw.choice(SIZES) for _ in range(draw.integer(0, 4))]
        while torch.Size(shape).numel() > MOST_ELEMENTS // 4:
            shape[shape.index(max(shape))] //= 2
        kind = draw.choice((*FLOATS, torch.float32, torch.float32, *INTEGERS, torch.bool))
        writer.argument(draw, tuple(shape), kind, special=draw.integer(0, 5) == 5)
    lines = draw.integer(3, most_lines)
    for _ in range(_TRIES * lines):
        if len(writer.lines) < lines:
            writer.grow(draw)
    return writer.finished(draw)
