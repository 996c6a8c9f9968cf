# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`loss += x` and its kind, traced as `loss = loss + x`.

A step of a loop that writes to a tensor does more than compute, so that no scan would come of it.
Where the tensor has memory of its own, which no other shows, the call gives a new tensor instead.
Whatever reads the old one later is given the new one; results that hold it are, too.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from weft.capture.signature import attributes_of_fake
from weft.capture.skipped_loop import stands_in, step_of
from weft.capture.step_calls import is_plain_call, looks_of
from weft.capture.step_operations import gives_views, lies_in, views_of
from weft.capture.traced_nodes import NotRepeated, node_behind
from weft.frontend.strides import storage_of

_NAMES = (
    *("add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "pow", "lerp", "neg"),
    *("addcmul", "addcdiv", "abs", "exp", "log", "sqrt", "rsqrt", "square", "reciprocal"),
    *("relu", "sigmoid", "tanh", "clamp", "clamp_min", "clamp_max", "masked_fill"),
    *("logical_and", "logical_or", "logical_xor", "logical_not"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"),
)
_OUT_OF_PLACE = {
    **{getattr(torch.Tensor, f"{name}_"): getattr(torch.Tensor, name) for name in _NAMES},
    **{getattr(torch, f"{name}_"): getattr(torch, name) for name in ("relu", "sigmoid", "tanh")},
    **{
        getattr(torch.Tensor, f"__i{name}__"): getattr(torch.Tensor, f"__{name}__")
        for name in ("and", "or", "xor")
    },
}
# Functions that are told by an argument to write, and where that stands.
_INPLACE = {
    function: list(inspect.signature(function).parameters).index("inplace")
    for function in (
        *(F.relu, F.relu6, F.leaky_relu, F.elu, F.selu, F.celu, F.silu, F.mish),
        *(F.hardtanh, F.hardsigmoid, F.hardswish, F.threshold),
    )
}

Call = tuple[Callable, tuple, dict]  # a function and its arguments


def out_of_place(function: Callable, args: tuple, kwargs: dict) -> Call | None:
    """The call that gives the new value of the first argument, of one that writes that to it."""
    if not args or not isinstance(args[0], FakeTensor):
        return None
    if (at := _INPLACE.get(function)) is not None:
        if not (args[at] if at < len(args) else kwargs.get("inplace")):
            return None
        others = {name: value for name, value in kwargs.items() if name != "inplace"}
        return function, (*args[:at], *([False] if at < len(args) else [])), others
    if function is torch.Tensor.copy_:
        return (torch.clone, args[1:], {}) if len(args) == 2 and not kwargs else None
    other = _OUT_OF_PLACE.get(function)
    return None if other is None else (other, args, kwargs)


class InPlaceCalls:
    """Those of one trace."""

    def __init__(self) -> None:
        self._any = False
        self._stale: set[torch.fx.Node] = set()  # views of what has been replaced

    def __bool__(self) -> bool:
        """Whether a tensor has been replaced."""
        return self._any

    def takes_place(self, tensor: FakeTensor, result: Any) -> bool:
        """Whether the result is what the tensor would be: then it takes its place."""
        with torch._C.DisableTorchFunction():
            if not isinstance(result, FakeTensor) or looks_of(result)[:3] != looks_of(tensor)[:3]:
                return False
            if tensor.requires_grad and not result.requires_grad:  # without gradients
                return False
            self._note_views(tensor)
            torch.autograd.graph.increment_version(tensor)  # tapes may have kept it
        self._any = True
        vars(tensor)["_weft_newest"] = result
        return True

    def _note_views(self, tensor: FakeTensor) -> None:
        """Of a step that is being skipped, the traced ones have shown that it reads none."""
        if (made := step_of(tensor)) is not None:
            self._stale.update(made.loop.views_of(tensor))
        with contextlib.suppress(NotRepeated):
            node = node_behind(tensor)
            self._stale.update(views_of(node, _memories(tensor, node)))

    def newest(self, value: Any) -> Any:
        """The value, with the tensors that have taken the places of others."""
        if isinstance(value, FakeTensor):
            while (other := _replacement(value)) is not None:
                value = other
            return value
        if isinstance(value, (tuple, list)):
            made = tuple(map(self.newest, value))
            if not any(a is not b for a, b in zip(made, value, strict=True)):
                return value
            return list(made) if isinstance(value, list) else made
        if isinstance(value, dict):
            return {key: self.newest(each) for key, each in value.items()}
        if isinstance(value, slice):
            return slice(*map(self.newest, (value.start, value.stop, value.step)))
        return value

    def result(self, value: Any) -> Any:
        """The same of a call's result, whose lists and dicts stay the ones that they are."""
        if type(value) is list:
            value[:] = map(self.result, value)
        elif type(value) is dict:
            for key in value:
                value[key] = self.result(value[key])
        elif type(value) is tuple:
            made = tuple(map(self.result, value))
            return made if any(a is not b for a, b in zip(made, value)) else value
        elif isinstance(value, FakeTensor):
            return self.newest(value)
        return value

    def check_read(self, tensors: Iterable[FakeTensor]) -> None:
        """Raises: NotRepeated, where one of them shows what a tensor was that has been replaced."""
        for each in tensors if self._stale else ():
            made = step_of(each)
            nodes = [] if made is None else made.loop.traced_nodes(each)
            with contextlib.suppress(NotRepeated):
                nodes.append(node_behind(each))
            if not self._stale.isdisjoint(nodes):
                raise NotRepeated("a view of a tensor that was changed in place is read")

    def check(self, results: Iterable[Any]) -> None:
        """Raises: NotRepeated, where one of all that is left of the program has been replaced."""
        tensors = [each for each in results if isinstance(each, FakeTensor)]
        if any(_replacement(each) is not None for each in tensors):
            raise NotRepeated("an object holds a tensor that was changed in place")
        self.check_read(tensors)


def version_of(tensor: FakeTensor) -> int:
    """How often it has been written to, without the write that has replaced it."""
    return tensor._version - (_replacement(tensor) is not None)


def _replacement(tensor: FakeTensor) -> FakeTensor | None:
    return vars(tensor).get("_weft_newest")


def is_plain_now() -> bool:
    """Whether a trace is under way, and neither a transform nor a checkpoint around the call."""
    return is_plain_call() and get_proxy_mode() is not None


def is_intermediate(tensor: FakeTensor) -> bool:
    """Whether the tensor is one, and no view."""
    with torch._C.DisableTorchFunction():
        if not is_plain_now() or attributes_of_fake(tensor) or _is_watched(tensor):
            return False
        if tensor.requires_grad and not torch.is_grad_enabled():
            return False  # it keeps its history, which a new tensor would not have
        made = step_of(tensor)
        if made is not None and made.node is None:
            return not made.loop.is_view(tensor)
        if tensor.requires_grad and tensor.is_leaf and not stands_in(tensor):
            return False  # autograd refuses the call
        try:
            node = node_behind(tensor)
        except NotRepeated:
            return False
        memories = _memories(tensor, node)
        if node.op != "call_function" or gives_views(node):
            return False
        return not any(lies_in(each, memories) for each in node.all_input_nodes)


def _is_watched(tensor: FakeTensor) -> bool:
    """Whether something is told of the tensor's gradient."""
    return bool(tensor._backward_hooks) or tensor.retains_grad


def _memories(tensor: FakeTensor, node: torch.fx.Node) -> set[int]:
    """A tensor that a step gave has its own, and its node another one."""
    return {storage_of(tensor), storage_of(node.meta["val"])}
