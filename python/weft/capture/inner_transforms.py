# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transforms of torch.func that a traced call makes itself.

torch.export traces above the transforms, where it meets tensors that these have wrapped and knows
nothing of. So the outermost transform is traced below them, as a graph of its own, whose ops are
then called in its place. For a process that traces and ends: functions of torch's are replaced.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import torch
import torch.utils._pytree as pytree
from torch._functorch import apis, eager_transforms
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx
from torch.fx.traceback import annotate, preserve_node_meta

from weft.capture.signature import Declined

_USERS = "weft.detached_by_the_user"
_DETACH = torch.ops.aten.detach.default
_ZEROS = torch.ops.aten._efficientzerotensor.default


@contextlib.contextmanager
def inner_transforms_traced(training: bool) -> Iterator[None]:
    """training: gradients are recorded outside of them."""
    within = _Within(training)
    with contextlib.ExitStack() as stack:
        for module, name in (
            (eager_transforms, "grad_impl"),
            (eager_transforms, "grad_and_value_impl"),
            (eager_transforms, "_jvp_with_argnums"),
            (apis, "vmap_impl"),
        ):
            stack.enter_context(patch.object(module, name, within.traced(getattr(module, name))))
        opening = eager_transforms._vjp_with_argnums
        stack.enter_context(
            patch.object(eager_transforms, "_vjp_with_argnums", within.refused(opening))
        )
        yield


class _Within:
    def __init__(self, training: bool) -> None:
        self._is_tracing = False
        self._training = training

    def traced(self, transform: Callable[..., Any]) -> Callable[..., Any]:
        """One that has left its tensors' wrappers behind when it returns."""

        @functools.wraps(transform)
        def run(*args: Any, **kwargs: Any) -> Any:
            if self._is_tracing or torch._C._are_functorch_transforms_active():
                return transform(*args, **kwargs)
            self._is_tracing = True
            try:
                call = _Call(transform, args, kwargs)
                with _no_grad_refused() if self._training else contextlib.nullcontext():
                    graph = call.traced()
            finally:
                self._is_tracing = False
            return call.value(graph.forward(*call.tensors))

        return run

    def refused(self, transform: Callable[..., Any]) -> Callable[..., Any]:
        """One that gives a function which goes on with wrapped tensors."""

        @functools.wraps(transform)
        def run(*args: Any, **kwargs: Any) -> Any:
            if not (self._is_tracing or torch._C._are_functorch_transforms_active()):
                raise Declined("it calls torch.func.vjp or jacrev outside of another transform")
            return transform(*args, **kwargs)

        return run


class _Call:
    """Of a transform. tensors: among its arguments."""

    def __init__(self, transform: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> None:
        self._transform = transform
        self._leaves, self._spec = pytree.tree_flatten((args, kwargs))
        self._places = [n for n, x in enumerate(self._leaves) if isinstance(x, torch.Tensor)]
        self.tensors = [self._leaves[place] for place in self._places]

    def traced(self) -> torch.fx.GraphModule:
        """The ops that it calls in the end, of `tensors`."""
        with (
            torch._C.DisableTorchFunction(),
            disable_proxy_modes_tracing(),
            preserve_node_meta(),
            _detaching_marked(),
        ):
            graph = make_fx(self._run)(*self.tensors)
        # Autograd's own, of results that it saves: they stop no gradient further outside.
        for node in graph.graph.find_nodes(op="call_function", target=_DETACH):
            if _USERS not in node.meta.get("custom", ()):
                node.replace_all_uses_with(node.args[0])
                graph.graph.erase_node(node)
        # Those of forward derivatives, which nobody writes to, have no elements until one is asked.
        for node in graph.graph.find_nodes(op="call_function", target=_ZEROS):
            node.target = torch.ops.aten.zeros.default
        graph.recompile()
        return graph

    def _run(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        leaves = list(self._leaves)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        self._results, self._structure = pytree.tree_flatten(self._transform(*args, **kwargs))
        return [each for each in self._results if isinstance(each, torch.Tensor)]

    def value(self, tensors: list[torch.Tensor]) -> Any:
        """What it gives, by its tensors."""
        given = iter(tensors)
        leaves = [next(given) if isinstance(x, torch.Tensor) else x for x in self._results]
        return pytree.tree_unflatten(leaves, self._structure)


@contextlib.contextmanager
def _detaching_marked() -> Iterator[None]:
    def marked(detach: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(detach)
        def run(*args: Any, **kwargs: Any) -> Any:
            with annotate({_USERS: True}):
                return detach(*args, **kwargs)

        return run

    def by_name(call: Callable[..., Any]) -> Callable[..., Any]:
        """Of an op of `torch.ops`. Torch's own code passes on by it what it was called with."""

        @functools.wraps(call)
        def run(op: Any, *args: Any, **kwargs: Any) -> Any:
            if op in (_DETACH, torch.ops.aten.detach) and not _is_called_by_torch():
                with annotate({_USERS: True}):
                    return call(op, *args, **kwargs)
            return call(op, *args, **kwargs)

        return run

    with contextlib.ExitStack() as stack:
        for where in (torch.Tensor, torch):
            stack.enter_context(patch.object(where, "detach", marked(where.detach)))
        for kind in (torch._ops.OpOverload, torch._ops.OpOverloadPacket):
            stack.enter_context(patch.object(kind, "__call__", by_name(kind.__call__)))
        yield


def _is_called_by_torch() -> bool:
    """Of the function that asks this in the name of another one."""
    return sys._getframe(2).f_globals.get("__name__", "").partition(".")[0] == "torch"


@contextlib.contextmanager
def _no_grad_refused() -> Iterator[None]:
    """What it keeps from gradients is not seen from outside of the transform."""
    entered = torch.set_grad_enabled.__init__

    def run(self: torch.set_grad_enabled, mode: bool) -> None:
        if not mode:
            raise Declined("a transform of torch.func calls no_grad, and gradients are recorded")
        entered(self, mode)

    with patch.object(torch.set_grad_enabled, "__init__", run):
        yield
