# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.compile_step`: forward, backward, clipping and the optimizer's update as one program."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from weft import config, errors
from weft.compiled.api import compile as compile_callable
from weft.compiled.module import callable_of
from weft.compiled.programs import MOST_SPECIALIZATIONS
from weft.compiled.specialize import Specialized
from weft.training.step_graph import Clipping
from weft.training.step_program import StepProgram
from weft.training.update_rules import refusal

# The number of calls, one after another, in which no program of the loss is made.
_MOST_IN_VAIN = 2
_ADVICE = "this training step runs in three parts, not as one program: {reason}"


def compile_step(
    model: torch.nn.Module,
    loss: Callable[..., torch.Tensor],
    optimizer: torch.optim.Optimizer,
    *,
    max_norm: float | None = None,
    clip_value: float | None = None,
    **settings: Any,
) -> CompiledStep:
    """A training step: `step(inputs, *targets)` does what these lines do, and returns the loss:

        optimizer.zero_grad()
        value = loss(model(inputs), *targets)
        value.backward()
        optimizer.step()

    inputs: the model's arguments: one tensor, a tuple of arguments, or a dict of keyword arguments.
    The loss has to be a tensor of one element. With SGD, Adam and AdamW the whole step is one
    program, which updates parameters, buffers and the optimizer's state in place; no gradients are
    stored, and `.grad` is None afterwards. Where that is not possible (an optimizer of another
    class, or hooks that would see a gradient), forward and backward are programs and the optimizer
    makes the update; a warning and `step.reasons` say why. The first two calls run in that way as
    well: in the first the optimizer makes its state, and the results of the second one are compared
    with the program's.

    max_norm, clip_value: limits for the gradients of the optimizer's parameters, as for
    torch.nn.utils.clip_grad_norm_ and clip_grad_value_. settings: those of `weft.compile`.
    Raises: TypeError, if `model` is not a module or `optimizer` not an optimizer.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"expected a module, found {type(model).__qualname__}")
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"expected an optimizer, found {type(optimizer).__qualname__}")
    found = callable_of(model)
    original = model if found is None else found.original

    compiled = compile_callable(_Loss(original, loss), **settings)
    return CompiledStep(compiled, optimizer, Clipping(max_norm, clip_value))


class _Loss(torch.nn.Module):
    """The loss as a module, so that the functions that it calls are watched like those of any
    module."""

    def __init__(self, model: torch.nn.Module, loss: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, inputs: Any, *targets: Any) -> torch.Tensor:
        if isinstance(inputs, dict):
            return self.loss(self.model(**inputs), *targets)
        if isinstance(inputs, tuple):
            return self.loss(self.model(*inputs), *targets)
        return self.loss(self.model(inputs), *targets)


class CompiledStep:
    """A compiled training step. A call makes one step and returns the loss, detached.

    compiled: the loss as a function of inputs and targets, for `weft.report` and `weft.stats`.
    steps: how many steps were made by one program. in_parts: how many were made by forward,
    backward and optimizer. reasons: why, with the number of such steps for each reason.
    """

    def __init__(
        self, compiled: Callable[..., Any], optimizer: torch.optim.Optimizer, clipping: Clipping
    ) -> None:
        self.compiled = compiled
        self.optimizer = optimizer
        self.steps = 0
        self.in_parts = 0
        self.reasons: Counter[str] = Counter()
        self._clipping = clipping
        self._programs = callable_of(compiled).face.programs
        self._made: list[StepProgram] = []
        self._in_vain = 0

    def __call__(self, inputs: Any, *targets: Any) -> torch.Tensor:
        args = (inputs, *targets)
        reason = refusal(self.optimizer)
        if reason is not None:
            return self._declined(reason, args)
        is_watched = torch.is_anomaly_enabled() or config.verify == "always"
        if not torch.is_grad_enabled() or is_watched:
            return self._in_parts(args)
        trained = self._programs.find_trained(args, {})
        if trained is None or trained.training.backward is None:
            value = self._in_parts(args)
            if self._programs.find_trained(args, {}) is not None:
                self._in_vain = 0
                return value
            self._in_vain += 1
            if self._in_vain > _MOST_IN_VAIN:
                return self._declined(self._why_in_parts(args), args, value)
            return value
        self._in_vain = 0
        program = self._program(trained)
        if program.reason is None:
            program.bind(trained, args)
        has_state = program.reason is None and program.has_state()
        if has_state and not program.is_even():
            program.divide()
        if program.reason is not None:
            return self._declined(program.reason, args)
        if not has_state:
            return self._in_parts(args)
        if not program.verified:
            return self._first(program, args)
        try:
            value = program.run()
        except errors.AssertError:  # nothing has changed, and PyTorch raises an error of its own
            return self._in_parts(args)
        self.steps += 1
        return value

    def stats(self) -> dict[str, Any]:
        """steps: made by one program; in_parts: made by three parts; reasons: why, each reason
        once."""
        return {"steps": self.steps, "in_parts": self.in_parts, "reasons": list(self.reasons)}

    def report(self, file: Any = None) -> None:
        """Prints `weft.report` of the loss, and how the steps were made."""
        callable_of(self.compiled).face.report(file)
        print(f"{self.steps} steps by one program, {self.in_parts} in three parts", file=file)
        for reason, count in self.reasons.most_common():
            print(f"  {count}: {reason}", file=file)

    def _program(self, trained: Specialized) -> StepProgram:
        for program in self._made:
            if program.stands_for(trained, self.optimizer):
                return program
        program = StepProgram.of(trained, self.optimizer, self._clipping)
        self._made = [*self._made[1 - MOST_SPECIALIZATIONS :], program]
        return program

    def _first(self, program: StepProgram, args: tuple) -> torch.Tensor:
        """Makes the step by PyTorch's optimizer, and compares the program's results with it."""
        expected = program.ahead()
        gradients: list[torch.Tensor | None] = []
        value = self._in_parts(args, lambda: gradients.extend(each.grad for each in program.params))
        program.compare(expected, value, gradients)
        return value

    def _why_in_parts(self, args: tuple) -> str:
        if self._programs.find_range(args, {}) is not None:
            return "its sizes vary, and the loss is a program for a range of them"
        stats = callable_of(self.compiled).face.stats()
        why = "what it is compiled for changes"
        if stats["breaks"]:
            why = stats["breaks"][0]
        elif stats["replayed"]:
            why = "its operations are observed"
        return f"the loss is not one program with its gradients: {why}"

    def _declined(self, reason: str, args: tuple, made: torch.Tensor | None = None) -> torch.Tensor:
        """Makes a step without the program. made: the loss, if the step has been made already."""
        if not self.reasons:
            warnings.warn(_ADVICE.format(reason=reason), errors.WeftWarning, stacklevel=3)
        self.reasons[reason] += 1
        return self._in_parts(args) if made is None else made

    def _in_parts(self, args: tuple, see: Callable[[], None] = lambda: None) -> torch.Tensor:
        """Makes a step by forward, backward and optimizer. see: is called once there are
        gradients."""
        self.in_parts += 1
        self.optimizer.zero_grad(set_to_none=True)
        value = self.compiled(*args)
        value.backward()
        params = [each for group in self.optimizer.param_groups for each in group["params"]]
        self._clipping.clip(params)
        see()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return value.detach()
