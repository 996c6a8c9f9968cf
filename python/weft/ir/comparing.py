# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparing modules: as text, and by what they compute."""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree

from weft._compiler import stage_passes
from weft.compiled.module import callable_of
from weft.ir.capturing import Program, capture
from weft.ir.elements import to_array
from weft.ir.interpreting import interpret
from weft.ir.module import Module
from weft.ir.passes import Pass, as_pass
from weft.ir.running import executable
from weft.ir.slowness import Slowdown, first_slow
from weft.ir.values import Operation

# Roundings of half precision that count as none.
_STEPS = 16
_VALUE = re.compile(r"%(\d+)")
# The bytes of a large constant, of which the start is enough to look at.
_LONG = re.compile(r'("0x[0-9A-F]{32})[0-9A-F]{32,}"')


def diff(before: Module | str, after: Module | str, *, context: int = 3) -> str:
    """What changed, as a unified diff; empty if nothing did.

    Values have numbers in the order of the text, which change behind every op that comes or goes:
    those of `after` are renamed to what they are in `before`, also where an op took the place of
    another, and the others are %new0, %new1, …
    """
    old, new = str(before).splitlines(), str(after).splitlines()
    renamed = _renamed(old, new)
    lines = difflib.unified_diff(old, renamed, "before", "after", lineterm="", n=context)
    return "\n".join(_LONG.sub(r'\1…"', line) for line in lines)


def _renamed(old: list[str], new: list[str]) -> list[str]:
    names: dict[str, str] = {}
    blank = [[_VALUE.sub("%", line) for line in text] for text in (old, new)]
    matcher = difflib.SequenceMatcher(None, *blank, autojunk=False)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag not in ("equal", "replace"):
            continue
        for before, after in zip(old[a:a_end], new[b:b_end]):
            if " = " in before and " = " in after:
                defined = (text.partition(" = ")[0] for text in (after, before))
                names.update(zip(*(_VALUE.findall(each) for each in defined)))
    fresh: dict[str, str] = {}

    def rename(match: re.Match[str]) -> str:
        number = match[1]
        if number in names:
            return f"%{names[number]}"
        return fresh.setdefault(number, f"%new{len(fresh)}")

    return [_VALUE.sub(rename, line) for line in new]


@dataclass(frozen=True)
class Difference:
    """Where a program first computes something else.

    pass_name: of the pass whose result differs; "capture" where the graph itself does, "code" where
    that is right until machine code is made of it. op: the first op of the module behind the pass
    whose value none had ahead of it, None if there is none. expected, found: the result of `main`
    that differs, in float64 before the pass and behind it. error: the largest, as `tolerance`
    counts it. diff: what the pass changed, as text.
    """

    pass_name: str
    op: Operation | None
    expected: np.ndarray
    found: np.ndarray
    error: float
    diff: str = field(repr=False, default="")

    def __str__(self) -> str:
        where = f" at {self.op.name} ({self.op.location or 'no line'})" if self.op else ""
        at = np.unravel_index(np.argmax(_errors(self.expected, self.found)), self.expected.shape)
        place = f"[{', '.join(map(str, at))}]"
        values = f"result{place} is {self.found[at]:.9g}, expected {self.expected[at]:.9g}"
        return f"{self.pass_name}{where}: {values} (error {self.error:.2g})\n{self.diff}".rstrip()


def bisect(
    model: Callable[..., Any],
    *inputs: Any,
    tolerance: float = 1e-4,
    passes: Iterable[Pass | str] = (),
    slowdown: float | None = None,
    **options: Any,
) -> Difference | Slowdown | None:
    """The first pass that changes what the program computes, or that slows it down; None if none
    does.

    The captured graph is compared with eager PyTorch, then, in float64, the module behind each pass
    with the graph, and last the machine code. passes: further ones, run on the graph first; those
    that a compiled model was given come ahead of them.
    tolerance: errors up to this count as none, relative where the value is above 1; results of
    half precision may be some roundings off.
    slowdown: where results agree, also looks for a pass without which the program is more than so
    many times as fast, by measuring it without each pass in turn.
    options: those of `weft.compile`.
    Raises: errors.NotCompiledError, if PyTorch has to run the call.
    """
    compiled = callable_of(model)
    own = (compiled and compiled.face.options.passes) or ()
    program = capture(model, inputs, {})
    search = _Search(program, tolerance)
    eager = _eager(model if compiled is None else compiled.original, inputs, program)
    found = search.against_eager(eager)
    if found is not None:
        return found
    everything = [*own, *map(as_pass, passes)]
    found = search.through(everything, options)
    if found is not None or slowdown is None:
        return found
    steps = _steps(everything, options)
    return first_slow(program.module, steps, search.inputs, slowdown, options)


class _Search:
    def __init__(self, program: Program, tolerance: float) -> None:
        self.program = program
        self.tolerance = tolerance
        self.inputs = [each.detach().clone() for each in program.inputs]
        # Converted once: weights are large.
        self.wide = [each.double() if each.is_floating_point() else each for each in self.inputs]
        self.reference = interpret(program.module, self.wide, double=True)

    def against_eager(self, eager: dict[int, torch.Tensor]) -> Difference | None:
        expected = list(eager.values())
        found = [self.reference[number] for number in eager]
        return self._difference("capture", expected, found, lambda: (None, ""))

    def through(self, passes: Sequence[Pass], options: dict[str, Any]) -> Difference | None:
        """The compiler's own passes are looked at one by one only where what they lead to differs,
        as computing in float64 takes long."""
        states: list[_State] = []
        try:
            for state in _states(self.program.module.clone(), passes, options):
                states.append(state)
        except Exception:
            if (found := self._first(states)) is not None:
                return found
            raise
        changing = [each for each in states if str(each[1]) != str(each[2])]
        found = self._first(changing[: len(passes)])
        if found is None and changing and self._at(*changing[-1]) is not None:
            found = self._first(changing)
        if found is not None:
            return found
        code = _kernels(states[-1][2], options)(self.inputs)
        return self._difference("code", self.reference, code, lambda: (None, ""))

    def _first(self, states: Sequence[_State]) -> Difference | None:
        return next(filter(None, (self._at(*state) for state in states)), None)

    def _at(self, name: str, before: Module, after: Module) -> Difference | None:
        return self._difference(
            name,
            self.reference,
            interpret(after, self.wide, double=True),
            lambda: (self._culprit(before, after), diff(before, after)),
        )

    def _difference(
        self,
        name: str,
        expected: Sequence[torch.Tensor],
        found: Sequence[torch.Tensor],
        explain: Callable[[], tuple[Operation | None, str]],
    ) -> Difference | None:
        for wanted, result in zip(expected, found, strict=True):
            one, other = _wide(wanted), _wide(result)
            error = float(_errors(one, other).max(initial=0.0))
            if error > max(self.tolerance, _rounding(wanted), _rounding(result)):
                return Difference(name, *_ordered(explain(), one, other, error))
        return None

    def _culprit(self, before: Module, after: Module) -> Operation | None:
        known: dict[tuple[int, ...], list[np.ndarray]] = {}

        def remember(op: Operation, results: Sequence[torch.Tensor]) -> None:
            for result in map(_wide, results):
                known.setdefault(result.shape, []).append(result)

        new: list[Operation] = []

        def look(op: Operation, results: Sequence[torch.Tensor]) -> None:
            for result in map(_wide, results):
                alike = (_errors(each, result) for each in known.get(result.shape, ()))
                if not any(each.max(initial=0.0) <= self.tolerance for each in alike):
                    new.append(op)

        interpret(before, self.wide, double=True, observe=remember)
        interpret(after, self.wide, double=True, observe=look)
        return new[0] if new else None


def _ordered(explained: tuple[Operation | None, str], *values: Any) -> tuple[Any, ...]:
    op, text = explained
    return (op, *values, text)


# A pass with the module ahead of it and behind it.
_State = tuple[str, Module, Module]


def _states(module: Module, passes: Sequence[Pass], options: dict[str, Any]) -> Iterator[_State]:
    """Of each pass up to the stage `kernels`. What tells kernels apart by memory, which is the
    last one, is left to the code."""
    for name, step in _steps(passes, options):
        if name == "weft-dedupe-kernels":
            break
        after = module.clone()
        step(after)
        yield name, module, after
        module = after


def _steps(passes: Sequence[Pass], options: dict[str, Any]) -> list[tuple[str, Pass]]:
    """All passes up to the stage `kernels`, by name."""
    steps: list[tuple[str, Pass]] = [(each.name, each) for each in passes]
    for stage in ("optimized", "kernels"):
        for text in stage_passes(stage, _options(options)):
            steps.append((_pass_name(text), as_pass(text)))
    return steps


def _kernels(
    module: Module, options: dict[str, Any]
) -> Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]:
    """The code of a module that has come through the passes of `kernels` one by one."""
    module.run_passes("weft-dedupe-kernels")
    module.stage = "kernels"
    return executable(module, "kernels", **options)


def _pass_name(text: str) -> str:
    """The name alone in text such as "func.func(weft-simplify{lanes=16})"."""
    return re.sub(r"^func\.func\((.*)\)$", r"\1", text).partition("{")[0]


def _options(options: dict[str, Any]) -> dict[str, Any]:
    from weft.artifacts.builds import Options

    return Options(**options).for_compiler()


def _eager(model: Callable[..., Any], inputs: tuple, program: Program) -> dict[int, torch.Tensor]:
    """The tensors that PyTorch returns, by the number of the result that they are. Of copies: the
    call may write."""
    with torch.no_grad():
        value = copy.deepcopy(model)(*copy.deepcopy(inputs))
    leaves, _ = pytree.tree_flatten(value)
    return {
        target.result: leaves[target.index]
        for target in program.captured.lowered.outputs
        if target.kind == "user"
        and target.result is not None
        and not target.is_complex
        and target.chosen is None
    }


def _rounding(tensor: torch.Tensor) -> float:
    """What half precision may lose in a few steps; wider types have the tolerance alone."""
    half = tensor.dtype in (torch.float16, torch.bfloat16)
    return _STEPS * torch.finfo(tensor.dtype).eps if half else 0.0


def _wide(tensor: torch.Tensor) -> np.ndarray:
    return to_array(tensor.double())


def _errors(expected: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Absolute up to 1, relative above; equal infinities and NaNs have none."""
    with np.errstate(invalid="ignore"):
        error = np.abs(expected - found) / np.maximum(np.abs(expected), 1.0)
    same = (expected == found) | (np.isnan(expected) & np.isnan(found))
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
