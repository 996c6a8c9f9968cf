# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`te.kernel`: a formula as a function of PyTorch's tensors, with gradients.

Each set of shapes and dtypes is one op of PyTorch's dispatcher, in the library `weft_te`. Tracing
sees a call of the op and nothing inside of it; its gradient is another such op.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from weft.te import dtypes
from weft.te.building import Function, build
from weft.te.derivatives import gradients
from weft.te.errors import TEError
from weft.te.schedules import Schedule
from weft.te.tensors import Tensor, placeholder

_library = torch.library.Library("weft_te", "FRAGMENT")
_ops: dict[str, Op] = {}
# The gradients of ops, by the op's name and by which gradients are wanted. They are kept outside of
# the ops: a kernel may be a global that compiled programs watch, and must not be changed by its
# first gradient.
_gradients: dict[tuple[str, tuple[bool, ...]], Op] = {}


def kernel(function: Callable[..., Any] | None = None, /) -> Any:
    """Decorates a function that makes a formula. The function is called with placeholders in the
    place of tensors, and returns a tensor of te, a tuple of them, or a schedule. The result is
    called with tensors and returns tensors. Other arguments are passed on unchanged and must be
    hashable.

    Raises: TEError, when called, if the function returns anything else.
    """
    return Kernel(function) if function is not None else kernel


class Kernel:
    """A decorated function, with that function's attributes. `op(*args)` is the op for such
    arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TEError(f"expected a function to decorate, found {function!r}")
        functools.update_wrapper(self, function)
        self._function = function
        self._signature = inspect.signature(function)
        self._known: dict[Any, Op] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = list(bound.arguments.values())
        tensors = [each for each in values if isinstance(each, torch.Tensor)]
        return self._op(bound, values)(*tensors)

    def op(self, *args: Any, **kwargs: Any) -> Op:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return self._op(bound, list(bound.arguments.values()))

    def _op(self, bound: inspect.BoundArguments, values: list[Any]) -> Op:
        key = tuple(
            (tuple(map(int, each.shape)), each.dtype) if isinstance(each, torch.Tensor) else each
            for each in values
        )
        key = tuple((type(each), each) for each in key)
        try:
            known = self._known.get(key)
        except TypeError:  # an argument is not hashable
            names = ", ".join(type(each).__qualname__ for each in values)
            raise TEError(
                f"{self._function.__name__}: expected tensors of PyTorch and hashable values, "
                f"found {names}; te.build makes functions of other arrays"
            ) from None
        if known is None:
            known = self._known[key] = self._made(bound)
        return known

    def _made(self, bound: inspect.BoundArguments) -> Op:
        inputs: list[Tensor] = []
        for name, value in bound.arguments.items():
            if isinstance(value, torch.Tensor):
                shape = tuple(map(int, value.shape))
                bound.arguments[name] = placeholder(shape, dtypes.named(value.dtype), name)
                inputs.append(bound.arguments[name])
        result = self._function(*bound.args, **bound.kwargs)
        schedule = result if isinstance(result, Schedule) else Schedule.of(result)
        if schedule.family is not None:
            raise TEError(
                f"{self._function.__name__}: expected sizes of the tensors' shapes, found te.var: "
                "a kernel is called for each shape, which is that of its placeholders"
            )
        single = isinstance(result, Tensor) or (
            isinstance(result, Schedule) and len(result.outputs) == 1
        )
        return op_of(self._function.__name__, inputs, schedule, single)


class Op:
    """An op of the dispatcher. It is called with tensors like its placeholders.

    Attributes: name (in torch.ops.weft_te), function, schedule.
    """

    def __init__(self, name: str, function: Function, inputs: list[Tensor], single: bool) -> None:
        self.name, self.function, self._single = name, function, single
        self.schedule = function.schedule
        self._inputs, self._outputs = inputs, function.args[len(inputs) :]
        parameters = ", ".join(f"Tensor a{number}" for number in range(len(inputs)))
        results = ", ".join("Tensor" for _ in self._outputs)
        # Parentheses around one result mean nothing.
        _library.define(f"{name}({parameters}) -> ({results})")
        _library.impl(name, self._run, "CPU")
        torch.library.register_fake(f"weft_te::{name}", self._fake, lib=_library)
        torch.library.register_autograd(
            f"weft_te::{name}", self._backward, setup_context=self._save, lib=_library
        )
        self._call = getattr(torch.ops.weft_te, name)

    def __call__(self, *tensors: torch.Tensor) -> Any:
        result = _Transformed.apply(self, *tensors) if _in_transform() else self._call(*tensors)
        return result if self._single or isinstance(result, tuple) else (result,)

    @staticmethod
    def _returned(results: Sequence[torch.Tensor]) -> Any:
        return results[0] if len(results) == 1 else tuple(results)

    def _run(self, *tensors: torch.Tensor) -> Any:
        with torch.no_grad():
            results = self.function(*tensors)
        return self._returned(results if isinstance(results, tuple) else (results,))

    def _fake(self, *tensors: torch.Tensor) -> Any:
        return self._returned(
            [
                torch.empty(shape, dtype=dtype, device="cpu")
                if not tensors
                else tensors[0].new_empty(shape, dtype=dtype)
                for shape, dtype in map(_described, self._outputs)
            ]
        )

    @staticmethod
    def _save(ctx: Any, inputs: tuple[torch.Tensor, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def _backward(self, ctx: Any, *given: torch.Tensor | None) -> Any:
        return self.pulled_back(ctx.needs_input_grad, ctx.saved_tensors, given)

    def pulled_back(
        self,
        needed: Sequence[bool],
        tensors: Sequence[torch.Tensor],
        given: Sequence[torch.Tensor | None],
    ) -> tuple[torch.Tensor | None, ...]:
        """The gradients by the inputs, given those by the outputs."""
        wanted = self._differentiable(needed)
        if not any(wanted):
            return tuple(None for _ in wanted)
        seeds = [
            self._zeros(each) if seed is None else seed
            for seed, each in zip(given, self._outputs)
            if dtypes.is_float(each.dtype)
        ]
        found = iter(self._gradient(wanted)(*tensors, *seeds))
        return tuple(next(found) if each else None for each in wanted)

    def pushed_forward(
        self, tensors: Sequence[torch.Tensor], tangents: Sequence[torch.Tensor | None]
    ) -> tuple[torch.Tensor | None, ...]:
        """The tangents of the outputs, given those of the inputs. The gradient is a linear function
        of the gradients that are given for the outputs; the tangents are its transpose, which is
        computed as the gradient of the gradient."""
        wanted = self._differentiable([each is not None for each in tangents])
        floats = [dtypes.is_float(each.dtype) for each in self._outputs]
        if not any(wanted) or not any(floats):
            return tuple(None for _ in floats)
        seeds = [self._zeros(each) for each, is_float in zip(self._outputs, floats) if is_float]
        by_seeds = (*(False for _ in tensors), *(True for _ in seeds))
        moved = [each for each, want in zip(tangents, wanted) if want]
        transposed = self._gradient(wanted)._gradient(by_seeds)
        found = iter(transposed(*tensors, *seeds, *moved))
        return tuple(next(found) if each else None for each in floats)

    def mapped(
        self, size: int, dims: Sequence[int | None], tensors: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        """The results for each of `size` slices of the tensors along the dimensions `dims`, stacked
        along dimension 0. Each slice is a call of its own, since a kernel has one shape."""
        calls = []
        for number in range(size):
            slices = (
                each if dim is None else each.select(dim, number)
                for each, dim in zip(tensors, dims)
            )
            found = self(*slices)
            calls.append(found if isinstance(found, tuple) else (found,))
        if not calls:
            return [self._zeros(each).new_empty((0, *each.shape)) for each in self._outputs]
        return [torch.stack(each) for each in zip(*calls)]

    def _differentiable(self, needed: Sequence[bool]) -> tuple[bool, ...]:
        return tuple(
            need and dtypes.is_float(each.dtype) for need, each in zip(needed, self._inputs)
        )

    @staticmethod
    def _zeros(tensor: Tensor) -> torch.Tensor:
        shape, dtype = _described(tensor)
        return torch.zeros(shape, dtype=dtype)

    def _gradient(self, wanted: tuple[bool, ...]) -> Op:
        """The op that computes the gradients by the wanted inputs."""
        key = self.name, wanted
        if key not in _gradients:
            outputs = [each for each in self._outputs if dtypes.is_float(each.dtype)]
            seeds = [
                placeholder(each.shape, each.dtype, f"seed{len(self._inputs) + number}")
                for number, each in enumerate(outputs)
            ]
            wrt = [each for each, want in zip(self._inputs, wanted) if want]
            results = [_own(each) for each in gradients(outputs, seeds, wrt)]
            schedule = Schedule.of(results)
            _gradients[key] = op_of(
                f"{self.name.rsplit('_', 1)[0]}_gradient", [*self._inputs, *seeds], schedule, False
            )
        return _gradients[key]


def _in_transform() -> bool:
    """Whether a transform of torch.func or forward-mode differentiation is active. Neither uses the
    derivative of an op of the dispatcher: the former raises an error, the latter takes it for
    zero."""
    if torch.compiler.is_compiling():
        return False
    stack = torch._C._functorch.peek_interpreter_stack()
    return stack is not None or forward_ad._current_level >= 0


class _Transformed(torch.autograd.Function):
    """A call of an op, with the rules that transforms need."""

    @staticmethod
    def forward(op: Op, *tensors: torch.Tensor) -> Any:
        return op._call(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.op, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *given: torch.Tensor | None) -> Any:
        return None, *ctx.op.pulled_back(ctx.needs_input_grad[1:], ctx.saved_tensors, given)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: torch.Tensor | None) -> Any:
        return Op._returned(ctx.op.pushed_forward(ctx.saved_tensors, tangents))

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], op: Op, *tensors: torch.Tensor) -> Any:
        results = op.mapped(info.batch_size, dims[1:], tensors)
        return Op._returned(results), Op._returned([0] * len(results))


def _described(tensor: Tensor) -> tuple[tuple[int, ...], torch.dtype]:
    """The shape and the dtype of a tensor of te, in PyTorch's terms."""
    return tuple(map(int, tensor.shape)), getattr(torch, tensor.dtype)


def _own(tensor: Tensor) -> Tensor:
    """A new tensor for a gradient that equals a seed or another result."""
    from weft.te.expressions import Axis, Load
    from weft.te.tensors import Operation

    axes = tuple(Axis(size, f"i{dim}", "spatial") for dim, size in enumerate(tensor.shape))
    return Tensor(
        tensor.shape, tensor.dtype, Operation(f"{tensor.name}_out", axes, Load(tensor, axes))
    )


def op_of(name: str, inputs: list[Tensor], schedule: Schedule, single: bool) -> Op:
    """The op of a formula. Formulas with the same loops share one op."""
    function = build(schedule, [*inputs, *schedule.outputs], "kernel")
    digest = hashlib.blake2b(f"{function.module}{single}".encode(), digest_size=8)
    full = f"{name.strip('_<>') or 'kernel'}_{digest.hexdigest()}"
    if full not in _ops:
        _ops[full] = Op(full, function, inputs, single)
    return _ops[full]
