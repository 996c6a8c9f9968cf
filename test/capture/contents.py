# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes within an object: entries of containers, values and form of tensors, hooks, classes.

Each does something and returns what undoes it.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.parameter import is_lazy

Change = tuple[str, Callable[[], Callable[[], Any]]]


def changes_within(value: Any) -> Iterator[Change]:
    if isinstance(value, torch.Tensor):
        yield from _of_tensor(value)
    elif isinstance(value, torch.nn.Module):
        yield from _of_module(value)
    elif isinstance(value, (list, deque)):
        yield from _of_sequence(value)
    elif isinstance(value, dict):
        yield from _of_dict(value)
    elif isinstance(value, set):
        yield from _of_set(value)
    elif hasattr(value, "__array_interface__"):
        yield "other values", lambda: _array_changed(value)
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif isinstance(value, type):
        yield from _of_class(value)
    elif hasattr(value, "__dict__"):
        yield from _of_object(value)


def _restoring(values: Any, keep: Callable, refill: Callable) -> Callable:
    """Makes a change of a container out of a function. keep: what copies the container's entries,
    which `refill` puts back."""

    def change(function: Callable[[], Any]) -> Callable:
        def run() -> Callable:
            old = keep(values)
            function()

            def undo() -> None:
                values.clear()
                refill(old)

            return undo

        return run

    return change


def _of_sequence(values: Any) -> Iterator[Change]:
    change = _restoring(values, list, values.extend)
    yield "append", change(lambda: values.append(values[0] if values else 1.0))
    yield "insert", change(lambda: values.insert(0, values[-1] if values else 1.0))
    yield "clear", change(values.clear)
    if values:
        yield "pop", change(values.pop)
        yield "reverse", change(values.reverse)
        yield "remove and put back", change(lambda: values.append(values.pop()))


def _of_dict(values: dict) -> Iterator[Change]:
    change = _restoring(values, dict, values.update)

    def rename() -> None:
        key = next(iter(values))
        values[f"{key}_"] = values.pop(key)

    def rotate() -> None:
        key = next(iter(values))
        values[key] = values.pop(key)

    yield "add", change(lambda: values.update(added=1.0))
    yield "clear", change(values.clear)
    if values:
        yield "rename the first", change(rename)
        yield "the first comes last", change(rotate)


def _of_set(values: set) -> Iterator[Change]:
    change = _restoring(values, set, values.update)

    yield "add", change(lambda: values.add("added"))
    yield "clear", change(values.clear)
    if values:
        yield "discard", change(lambda: values.discard(sorted(values, key=repr)[0]))


def _of_tensor(tensor: torch.Tensor) -> Iterator[Change]:
    """In the same memory, and by `.data`, of which no dict and no version tells."""
    if is_lazy(tensor) or tensor.layout != torch.strided or tensor.device.type != "cpu":
        return

    def change(function: Callable[[torch.Tensor], Any]) -> Callable:
        def run() -> Callable:
            memory, content, gradient = tensor.data, tensor.detach().clone(), tensor.grad
            attributes, required = dict(vars(tensor)), tensor.requires_grad
            with torch.no_grad():
                function(tensor)

            def undo() -> None:
                tensor.data = memory
                tensor.data.copy_(content)
                tensor.grad = gradient
                if tensor.is_leaf:
                    tensor.requires_grad_(required)
                vars(tensor).clear()
                vars(tensor).update(attributes)

            return undo

        return run

    def assign(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable:
        return change(lambda t: setattr(t, "data", function(t.detach().clone())))

    yield "an attribute", change(lambda t: setattr(t, "scale", 5.0))
    if tensor.dtype == torch.bool:
        yield "other values", change(lambda t: t.logical_not_())
        return
    yield "other values", change(lambda t: t.add_(1))
    yield "other memory", assign(lambda t: t)
    yield "other data", assign(lambda t: t + 1)
    yield "data with another dim", assign(lambda t: t.unsqueeze(0))
    if tensor.dim() > 1:
        yield "data transposed in memory", assign(lambda t: t.mT.contiguous().mT)
    if tensor.dim():
        yield "longer data", assign(lambda t: torch.cat([t, t]))
    if tensor.is_floating_point():
        yield "data of another dtype", assign(lambda t: t.double())
        yield "a gradient", change(lambda t: setattr(t, "grad", torch.ones_like(t)))
        if tensor.is_leaf:
            yield "the other requires_grad", change(lambda t: t.requires_grad_(not t.requires_grad))


def _of_module(module: torch.nn.Module) -> Iterator[Change]:
    def hook(register: Callable[[], Any]) -> Callable:
        return lambda: register().remove

    def mode() -> Callable:
        old = {child: child.training for child in module.modules()}
        module.train(not module.training)

        def undo() -> None:
            for child, training in old.items():
                child.training = training

        return undo

    def own_forward() -> Callable:
        old = module.forward
        vars(module)["forward"] = lambda *args, **kwargs: _doubled(old(*args, **kwargs))
        return lambda: vars(module).pop("forward")

    yield "forward hook", hook(lambda: module.register_forward_hook(lambda m, a, o: _doubled(o)))
    yield (
        "pre-hook",
        hook(lambda: module.register_forward_pre_hook(lambda m, a: tuple(map(_doubled, a)))),
    )
    yield "the other mode", mode
    yield "a forward of its own", own_forward
    yield "another attribute", lambda: _add_attribute(module)
    yield "another __dict__", lambda: _copy_of_attributes(module)


def _of_function(function: types.FunctionType) -> Iterator[Change]:
    def code() -> Callable:
        old = function.__code__
        function.__code__ = _other.__code__
        return lambda: setattr(function, "__code__", old)

    if not function.__code__.co_freevars:
        yield "other code", code
    yield "an attribute", lambda: _add_attribute(function)


def _of_class(kind: type) -> Iterator[Change]:
    def add(name: str, value: Any) -> Callable:
        def run() -> Callable:
            setattr(kind, name, value)
            return lambda: delattr(kind, name)

        return run

    yield "another attribute", add("added", 5.0)
    if "__getattribute__" not in vars(kind):
        yield "a __getattribute__", add("__getattribute__", _own_getattribute)
    if "__call__" not in vars(kind) and not issubclass(kind, torch.Tensor):
        yield "a __call__", add("__call__", lambda self, *args, **kwargs: args[0] * 5)
    if "__bool__" not in vars(kind):
        yield "a __bool__", add("__bool__", lambda self: False)


def _of_object(value: Any) -> Iterator[Change]:
    yield "another attribute", lambda: _add_attribute(value)
    yield "another __dict__", lambda: _copy_of_attributes(value)
    kind = type(value)
    if "__slots__" not in vars(kind) and kind.__flags__ & (1 << 9):  # a class made by Python code
        yield "a subclass as its class", lambda: _subclassed(value)


def _add_attribute(value: Any) -> Callable:
    vars(value)["added"] = 5.0
    return lambda: vars(value).pop("added")


def _copy_of_attributes(value: Any) -> Callable:
    """Another dict with the same attributes, one number among them changed."""
    old = value.__dict__
    made = dict(old)
    for name, each in old.items():
        if type(each) is float:
            made[name] = each + 1
            break
    object.__setattr__(value, "__dict__", made)
    return lambda: object.__setattr__(value, "__dict__", old)


def _subclassed(value: Any) -> Callable:
    kind = type(value)
    object.__setattr__(value, "__class__", type(kind)(kind.__name__, (kind,), {}))
    return lambda: object.__setattr__(value, "__class__", kind)


def _array_changed(array: Any) -> Callable:
    old = array.copy()
    array[...] = [5.0] if array.dtype == object else old + 1

    def undo() -> None:
        array[...] = old

    return undo


def _own_getattribute(self: Any, name: str) -> Any:
    value = object.__getattribute__(self, name)
    return value * 2 if type(value) is float else value


def _other(*args: Any, **kwargs: Any) -> Any:
    return args[0] * 5 if args else None


def _doubled(value: Any) -> Any:
    return value * 2 if isinstance(value, torch.Tensor) else value
