# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLIR text, written op by op. The same op on the same operands is written once per scope."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence


class Code:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 1
        self._count = 0
        self._pure: list[dict[str, str]] = [{}]
        self._loads: list[dict[str, str]] = [{}]

    def fresh(self) -> str:
        self._count += 1
        return f"%{self._count}"

    def line(self, text: str) -> None:
        self.lines.append("  " * self._depth + text)

    def op(self, text: str) -> str:
        """The name of the result of an op without effects. The op is added, unless it is there
        already."""
        for scope in self._pure:
            if text in scope:
                return scope[text]
        name = self.fresh()
        self.line(f"{name} = {text}")
        self._pure[-1][text] = name
        return name

    def load(self, text: str) -> str:
        """The name of the result of an op that reads memory, which later stores may change."""
        for scope in self._loads:
            if text in scope:
                return scope[text]
        name = self.fresh()
        self.line(f"{name} = {text}")
        self._loads[-1][text] = name
        return name

    def store(self, text: str) -> None:
        self.line(text)
        for scope in self._loads:
            scope.clear()

    def index(self, value: int) -> str:
        return self.op(f"arith.constant {value} : index")

    @contextlib.contextmanager
    def branch(self, condition: str, types: Sequence[str] = ()) -> Iterator[list[str]]:
        """Writes an if; the `with` body is its then part, and `otherwise` may follow. Yields the
        names of the if's results."""
        result = self.fresh()
        head = f"scf.if {condition} {{"
        if types:
            head = f"{result}:{len(types)} = scf.if {condition} -> ({', '.join(types)}) {{"
        with self.region(head):
            yield [f"{result}#{number}" for number in range(len(types))]

    @contextlib.contextmanager
    def otherwise(self) -> Iterator[None]:
        """The else part of the branch that has just ended."""
        self.lines.pop()
        with self.region("} else {"):
            yield

    @contextlib.contextmanager
    def region(self, head: str, tail: str = "}", *, loop: bool = False) -> Iterator[None]:
        """The body of an op with a region. loop: whether the body runs again after its own
        stores."""
        self.line(head)
        self._depth += 1
        self._pure.append({})
        outside = self._loads
        self._loads = [{}] if loop else [*outside, {}]
        yield
        self._pure.pop()
        if loop:
            for scope in outside:
                scope.clear()
        self._loads = outside
        self._depth -= 1
        self.line(tail)

    @contextlib.contextmanager
    def loop(
        self, low: str, high: str, values: Sequence[tuple[str, str]]
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """A loop with step one that carries values, given as (name, type). Yields the induction
        variable, the values inside the loop, and their names after it."""
        step, variable = self.index(1), self.fresh()
        inner = [self.fresh() for _ in values]
        result = self.fresh()
        head = f"scf.for {variable} = {low} to {high} step {step}"
        after: list[str] = []
        if values:
            starts = ", ".join(f"{name} = {value}" for name, (value, _) in zip(inner, values))
            types = ", ".join(kind for _, kind in values)
            head = f"{result}:{len(values)} = {head} iter_args({starts}) -> ({types})"
            after = [f"{result}#{number}" for number in range(len(values))]
        with self.region(f"{head} {{", loop=True):
            yield variable, inner, after

    def give(self, values: Sequence[tuple[str, str]]) -> None:
        """Ends a region by yielding these values."""
        if values:
            names, types = zip(*values)
            self.line(f"scf.yield {', '.join(names)} : {', '.join(types)}")
