# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`te.build`: compiles a schedule to a function on arrays of any framework."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from weft import _core, errors
from weft.artifacts import builds
from weft.te import arrays, exporting
from weft.te.arrays import Spec
from weft.te.defaults import default_schedule
from weft.te.emission import module_text
from weft.te.errors import TEError
from weft.te.expressions import Var
from weft.te.nests import Lowered, lowered
from weft.te.schedules import Schedule
from weft.te.showing import as_loops
from weft.te.tensors import Tensor


def lower(schedule: Any, args: Sequence[Tensor] = ()) -> str:
    """The loops of a schedule as text. args: as for `build`; they are checked if they are given."""
    scheduled = _schedule_of(schedule)
    low = lowered(scheduled)
    if args:
        _parted(low, [scheduled.own(each) for each in args if not isinstance(each, Var)])
    return as_loops(low)


def build(
    schedule: Any, args: Sequence[Any], name: str = "main", *, default: bool | None = None
) -> Any:
    """Compiles a schedule. args: placeholders and results in the order in which the function takes
    them. A schedule without steps, or tensors in place of a schedule, gets the steps of
    `te.default_schedule`; with `default=False` the loops stay as they are.

    Returns: a Function; for formulas with `te.var` a SizedFunction, which compiles a Function for
    each of the sizes that it is called with. Variables may be arguments, too.

    Raises: TEError, ScheduleError; errors.CompileError.
    """
    scheduled = _schedule_of(schedule)
    if scheduled.family is not None:
        from weft.te.sized import SizedFunction

        return SizedFunction(scheduled, args, name, default)
    if default or (default is None and not scheduled.steps):
        results = [each for each in args if isinstance(each, Tensor) and each.op.body is not None]
        scheduled = default_schedule(_joined(scheduled.outputs, results))
    low, inputs, results = checked_arguments(scheduled, args, name)
    return Function(name, list(args), inputs, results, scheduled, module_text(low, inputs, results))


def checked_arguments(
    schedule: Schedule, args: Sequence[Any], name: str
) -> tuple[Lowered, list[Tensor], list[Tensor]]:
    """Returns the loops, the arguments that the caller fills, and those that the kernel computes.

    Raises: TEError, ScheduleError.
    """
    low = lowered(schedule)
    inputs, results = _parted(low, args)
    if not isinstance(name, str) or not name.isidentifier():
        raise TEError(f"expected a name that is an identifier, found {name!r}")
    return low, inputs, results


def _joined(outputs: list[Tensor], results: list[Tensor]) -> list[Tensor]:
    """The outputs and the results that they are computed from, which have to be computed whole as
    well."""
    return outputs + [each for each in results if not any(each is other for other in outputs)]


def module_of(schedule: Schedule, args: Sequence[Tensor]) -> str:
    """The MLIR that `build` would compile, of the stage `linalg`."""
    low = lowered(schedule)
    return module_text(low, *_parted(low, args))


def _schedule_of(schedule: Any) -> Schedule:
    return schedule if isinstance(schedule, Schedule) else Schedule.of(schedule)


def _parted(low: Lowered, args: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """The arguments that the caller fills, and those that the kernel computes."""
    inputs: list[Tensor] = []
    results: list[Tensor] = []
    for each in args:
        if not isinstance(each, Tensor):
            raise TEError(f"expected tensors as arguments, found {each!r}")
        if any(each is other for other in (*inputs, *results)):
            raise TEError(f"expected different arguments, found {each.name} twice")
        state = low.schedule.state_of(each)
        if state is not None:
            raise TEError(f"{each.name} is the state of {state.name} and no argument")
        (inputs if each.op.body is None else results).append(each)
    roots = {tensor for nest in low.roots for tensor in nest.stage.op.results}
    for needed in low.inputs:
        if not any(needed is each for each in inputs):
            raise TEError(f"expected {needed.name} among the arguments: the kernel reads it")
    for output in low.schedule.outputs:
        if not any(output is each for each in results):
            raise TEError(f"expected {output.name} among the arguments: it is computed")
    for result in results:
        if not any(result is stage.tensor for stage in low.schedule.stages):
            raise TEError(
                f"{result.name} is an argument and not computed by the schedule: name it in "
                "te.create_schedule, too"
            )
        if result not in roots:
            raise TEError(
                f"{result.name} is an argument and has to be whole: compute it at the root"
            )
    names = [each.name for each in args]
    for each in names:
        if names.count(each) > 1:
            raise TEError(f"expected arguments of different names, found two called {each}")
    return inputs, results


class Function:
    """A compiled kernel. `f(x, y, z)` fills z in place; `f(x, y)` returns the result as an array of
    the first argument's framework. Nothing is copied, unless a tensor's strides or alignment differ
    from those of a compact tensor.

    Attributes: name, args, schedule, module (the MLIR that was compiled).
    """

    def __init__(
        self,
        name: str,
        args: list[Tensor],
        inputs: list[Tensor],
        results: list[Tensor],
        schedule: Schedule,
        module: str,
    ) -> None:
        self.name, self.args, self.schedule, self.module = name, args, schedule, module
        self.__name__ = name
        self._specs = [Spec(each.name, tuple(map(int, each.shape)), each.dtype) for each in args]
        self._inputs = [number for number, each in enumerate(args) if each.op.body is None]
        self._results = [number for number, each in enumerate(args) if each.op.body is not None]
        self._fresh = [self._specs[n] for n in self._results]
        # Shape and dtype of the result, if there is one result and it is the last argument.
        last = self._results == [len(args) - 1]
        self._last = (self._specs[-1].shape, self._specs[-1].torch_dtype) if last else None
        order = [*self._inputs, *self._results]
        self._places = [order.index(number) for number in range(len(args))]
        self.build = builds.build_module(module, "linalg", builds.Options())
        self._program = _core.Program(self.build.artifact)
        self._direct = _core.DirectCall(
            self._program, self._inputs, self._results, list(arrays.IMMUTABLE)
        )

    def __call__(self, *arrays_given: Any) -> Any:
        """Raises: errors.ArgumentError, which names the argument, what was expected and what was
        found."""
        if len(arrays_given) == len(self.args):
            if not self._direct(*arrays_given):
                self._fill(arrays_given)
                self._note_writes(arrays_given)
            return None
        if len(arrays_given) == len(self._inputs):
            return self._allocate(arrays_given)
        names = [spec.name for spec in self._specs]
        raise errors.ArgumentError(
            f"{self.name}: expected {len(names)} arguments ({', '.join(names)}), or the "
            f"{len(self._inputs)} that are read, found {len(arrays_given)}"
        )

    def _fill(self, given: Sequence[Any]) -> None:
        inputs = [arrays.to_tensor(given[n], self._specs[n], False) for n in self._inputs]
        results = [arrays.to_tensor(given[n], self._specs[n], True) for n in self._results]
        self._check_memory(inputs, results)
        targets = [
            each
            if each.is_contiguous() and each.data_ptr() % each.element_size() == 0
            else torch.empty(each.shape, dtype=each.dtype)
            for each in results
        ]
        with torch.no_grad():
            self._program.run(inputs, targets, None)
            for result, target in zip(results, targets):
                if result is not target:
                    result.copy_(target)

    def _note_writes(self, given: Sequence[Any]) -> None:
        """Tells autograd which tensors were written in place."""
        for number in self._results:
            if isinstance(given[number], torch.Tensor) and not given[number].is_inference():
                torch._C._increment_version((given[number],))

    def _allocate(self, given: Sequence[Any]) -> Any:
        template = given[0] if given else None
        if self._last is not None and type(template) is torch.Tensor:
            shape, dtype = self._last
            result = torch.empty(shape, dtype=dtype)
            if self._direct(*given, result):
                return result
        results = [arrays.empty_like(template, spec) for spec in self._fresh]
        ordered = [*given, *results]
        if not self._direct(*(ordered[place] for place in self._places)):
            inputs = [
                arrays.to_tensor(array, self._specs[n], False)
                for array, n in zip(given, self._inputs)
            ]
            targets = [
                arrays.to_tensor(each, spec, True) for each, spec in zip(results, self._fresh)
            ]
            self._program.run(inputs, targets, None)
        converted = tuple(arrays.like(template, each) for each in results)
        return converted[0] if len(converted) == 1 else converted

    def _check_memory(self, inputs: list[torch.Tensor], results: list[torch.Tensor]) -> None:
        """Raises: errors.ArgumentError for results that share memory with other arguments."""
        spans = [(self._specs[n].name, arrays.span(t)) for n, t in zip(self._inputs, inputs)]
        for number, result in zip(self._results, results):
            spec = self._specs[number]
            if not result.is_contiguous() and arrays.overlaps_itself(result):
                spec.refuse("elements with memory of their own", f"strides {result.stride()}")
            low, high = arrays.span(result)
            for name, (begin, end) in spans:
                if low < end and begin < high:
                    spec.refuse("memory of its own", f"memory shared with {name!r}")
            spans.append((spec.name, (low, high)))

    def export(self, folder: str | Path) -> tuple[Path, Path]:
        """Writes `NAME.so` and `NAME.h` for C programs. The header's function NAME takes the
        arguments' arrays.

        Raises: OSError, if the files cannot be written.
        """
        return exporting.export(self.name, self.args, self.module, folder)

    def assembly(self) -> str:
        """The machine code as assembly text."""
        from weft.ir import Module

        return Module.parse(self.module, stage="linalg").assembly()

    def __repr__(self) -> str:
        return f"<te.Function {self.name}({', '.join(each.name for each in self.args)})>"
