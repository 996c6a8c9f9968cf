# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.functional`: a module as a function of its inputs and its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.func import functional_call

from weft.compiled.api import compile as compile_callable
from weft.compiled.module import callable_of

# A tensor, or nested tuples and lists of tensors.
Nested = Any


def functional(module: torch.nn.Module, sample: Nested, **settings: Any) -> Functional:
    """A compiled function `f(inputs, parameters)` that computes what `module(*inputs)` would with
    these parameters in place of its own.

    sample: the module's arguments: a tensor, or a tuple of tensors, which may be nested.
    settings: those of `weft.compile`.
    Raises: TypeError, if `module` is not a module, or `sample` holds anything but tensors.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"expected a module, found {type(module).__qualname__}")
    found = callable_of(module)
    original = module if found is None else found.original
    return Functional(original, sample if isinstance(sample, tuple) else (sample,), settings)


class Functional:
    """A module as a function of its inputs and parameters.

    Arguments are flattened: `f(x, *parameters)` and `f((x, (h, c)), parameters)` mean the same as
    `f(x, parameters)` and `f(x, h, c, *parameters)`. Buffers are the module's own.

    names: of the parameters, in order. module: the module with calls like `sample` compiled.
    """

    def __init__(
        self, original: torch.nn.Module, sample: tuple[Nested, ...], settings: dict[str, Any]
    ) -> None:
        self.names = [name for name, _ in original.named_parameters()]
        self._inputs = len(list(_leaves(sample)))
        call = _FunctionalCall(original, self.names, sample)
        self.compiled = compile_callable(call, **settings)
        self.module = ModuleBySample(original, sample, settings)

    def __call__(self, *arguments: Nested) -> Any:
        """Raises: TypeError, if the number of tensors is not that of the inputs and parameters."""
        return self.compiled(*self._flat(arguments))

    def forward(self, *arguments: Nested) -> tuple[Any, Saved]:
        """The forward half: returns the detached results, and what `backward` needs."""
        leaves = [_leaf(each) for each in self._flat(arguments)]
        with torch.enable_grad():
            value = self.compiled(*leaves)
        outputs = [each for each in _leaves(value) if isinstance(each, torch.Tensor)]
        return _detached(value), Saved(leaves, outputs)

    def backward(self, saved: Saved, cotangents: Nested = None) -> tuple[torch.Tensor | None, ...]:
        """The backward half: the gradients of inputs and parameters in order, None where there is
        none. It may be called several times.

        cotangents: of the outputs, in their order. If there is one output of one element, the
        default is one. Raises: ValueError, if there are not as many as outputs.
        """
        given = [None] if cotangents is None else list(_leaves(cotangents))
        if len(given) != len(saved.outputs):
            raise ValueError(f"expected {len(saved.outputs)} cotangents, found {len(given)}")
        pairs = [(o, g) for o, g in zip(saved.outputs, given) if o.requires_grad]
        wanted = [each for each in saved.leaves if each.requires_grad]
        if not pairs or not wanted:
            return (None,) * len(saved.leaves)
        found = iter(
            torch.autograd.grad(
                [output for output, _ in pairs],
                wanted,
                [cotangent for _, cotangent in pairs],
                retain_graph=True,
                allow_unused=True,
            )
        )
        return tuple(next(found) if each.requires_grad else None for each in saved.leaves)

    def gradient(
        self, *arguments: Nested, cotangents: Nested = None
    ) -> tuple[torch.Tensor | None, ...]:
        """Runs both halves: the gradients of inputs and parameters in order."""
        return self.backward(self.forward(*arguments)[1], cotangents)

    def _flat(self, arguments: Sequence[Nested]) -> list[torch.Tensor]:
        leaves = list(_leaves(arguments))
        expected = self._inputs + len(self.names)
        if len(leaves) != expected:
            raise TypeError(
                f"expected {self._inputs} inputs and {len(self.names)} parameters, found "
                f"{len(leaves)} tensors"
            )
        return leaves


@dataclass
class Saved:
    """What a forward half keeps for its backward. leaves: the arguments. outputs: the results,
    which autograd connects with the leaves."""

    leaves: list[torch.Tensor]
    outputs: list[torch.Tensor]


class ModuleBySample(torch.nn.Module):
    """`module` with two ways to run: calls with arguments of the sample's shapes and dtypes are
    compiled, others are run by the module itself.

    compiled_calls, ordinary_calls: the number of calls of either kind.
    """

    def __init__(
        self, module: torch.nn.Module, sample: tuple[Nested, ...], settings: dict[str, Any]
    ) -> None:
        super().__init__()
        self.module = module
        self.compiled_calls = 0
        self.ordinary_calls = 0
        self._kind = _kind_of(sample)
        # It is kept in a list, so that it is not a submodule: its parameters are those of `module`.
        self._compiled: list[Callable[..., Any]] = [compile_callable(module, **settings)]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and _kind_of(args) == self._kind:
            self.compiled_calls += 1
            return self._compiled[0](*args)
        self.ordinary_calls += 1
        return self.module(*args, **kwargs)


class _FunctionalCall(torch.nn.Module):
    """A call of the module with parameters given as tensors in order."""

    def __init__(
        self, module: torch.nn.Module, names: list[str], sample: tuple[Nested, ...]
    ) -> None:
        super().__init__()
        self.module = module
        self.names = tuple(names)
        self.structure = _structure(sample)

    def forward(self, *leaves: torch.Tensor) -> Any:
        remaining = iter(leaves)
        inputs = _filled(self.structure, remaining)
        return functional_call(self.module, dict(zip(self.names, remaining)), inputs)


def _leaves(value: Nested) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def _structure(value: Nested) -> tuple | None:
    """Nested tuples with None in the place of each tensor. Raises: TypeError for anything else."""
    if isinstance(value, (tuple, list)):
        return tuple(_structure(each) for each in value)
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"expected a sample of tensors, found {type(value).__qualname__}")
    return None


def _filled(structure: tuple | None, leaves: Iterator[torch.Tensor]) -> Any:
    if structure is None:
        return next(leaves)
    return tuple(_filled(each, leaves) for each in structure)


def _kind_of(value: Nested) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(_kind_of(each) for each in value)
    return (value.shape, value.dtype) if isinstance(value, torch.Tensor) else (type(value), value)


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().requires_grad_(tensor.is_floating_point() or tensor.is_complex())


def _detached(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_detached(each) for each in value)
    return value.detach() if isinstance(value, torch.Tensor) else value
