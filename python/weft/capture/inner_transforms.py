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
_COTANGENT = "weft.cotangent"
_DETACH = torch.ops.aten.detach.default
_ZEROS = torch.ops.aten._efficientzerotensor.default
# Ops that torch's own forward derivatives are written with, which have none; of tensors of one type
# and shape.
_DIFFERENTIABLE = {
    torch.ops.prims.add.default: torch.ops.aten.add.Tensor,
    torch.ops.prims.sub.default: torch.ops.aten.sub.Tensor,
    torch.ops.prims.mul.default: torch.ops.aten.mul.Tensor,
}


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
            patch.object(eager_transforms, "_vjp_with_argnums", within.opened(opening))
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

    def opened(self, transform: Callable[..., Any]) -> Callable[..., Any]:
        """`vjp`, which gives a function that goes on with wrapped tensors: both are traced at once,
        along a cotangent that stands for all."""

        @functools.wraps(transform)
        def run(*args: Any, has_aux: bool = False, **kwargs: Any) -> Any:
            if self._is_tracing or torch._C._are_functorch_transforms_active():
                return transform(*args, has_aux=has_aux, **kwargs)

            def both(*args: Any, **kwargs: Any) -> Any:
                value, pull_back, *aux = transform(*args, has_aux=has_aux, **kwargs)
                return value, aux, pull_back(pytree.tree_map(_cotangent, value))

            self._is_tracing = True
            try:
                call = _Call(both, args, kwargs)
                with _no_grad_refused() if self._training else contextlib.nullcontext():
                    halves = _Halves(call.traced(), call)
            finally:
                self._is_tracing = False
            value, aux = halves.forward()
            return value, halves.pull_back, *aux

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
        for node in graph.graph.nodes:
            node.target = _DIFFERENTIABLE.get(node.target, node.target)
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


def _cotangent(result: torch.Tensor) -> torch.Tensor:
    with annotate({_COTANGENT: True}):
        return torch.empty_like(result)


def _kind(value: Any) -> Any:
    return (value.shape, value.dtype) if isinstance(value, torch.Tensor) else type(value)


class _Halves:
    """The ops of a function and of its pullback, in one graph: those of the pullback depend on the
    nodes that stand for cotangents."""

    def __init__(self, graph: torch.fx.GraphModule, call: _Call) -> None:
        self._graph, self._call = graph, call
        marks = (node for node in graph.graph.nodes if _COTANGENT in node.meta.get("custom", ()))
        self._cotangents = list(marks)
        self._behind = set(self._cotangents)
        for node in graph.graph.nodes:
            if not self._behind.isdisjoint(node.all_input_nodes):
                self._behind.add(node)
        self._results = graph.graph.output_node().args[0]

    def forward(self) -> tuple[Any, list[Any]]:
        """Gives the function's value, and what else it returns."""
        self._has_gradients = torch.is_grad_enabled()
        self._interpreter = torch.fx.Interpreter(self._graph, garbage_collect_values=False)
        given = iter(self._call.tensors)
        for node in self._graph.graph.nodes:
            if node.op == "placeholder":
                self._interpreter.env[node] = next(given)
            elif node.op != "output" and node not in self._behind:
                self._interpreter.env[node] = self._interpreter.run_node(node)
        value, aux, _ = self._value(self._interpreter.env)
        self._structure = pytree.tree_structure(value)
        pulling = self._behind.difference(self._cotangents)
        self._versions = {
            node: each._version
            for node, each in self._interpreter.env.items()
            if isinstance(each, torch.Tensor) and not pulling.isdisjoint(node.users)
        }
        return value, aux

    def pull_back(
        self, cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> Any:
        """Gives the gradients along the cotangents; may be called more than once."""
        if not retain_graph or create_graph is not None:
            raise Declined("a pullback of torch.func.vjp is told which graph to keep")
        if torch.is_grad_enabled() and not self._has_gradients:
            raise Declined("torch.func.vjp is called without gradients, and its pullback with them")
        with torch._C.DisableTorchFunction():  # of these, not of what took their places
            saved = [(self._interpreter.env[node], n) for node, n in self._versions.items()]
            if any(each._version != n for each, n in saved):
                raise Declined("what torch.func.vjp has saved is written ahead of its pullback")
        leaves, structure = pytree.tree_flatten(cotangents)
        made = [node.meta["val"] for node in self._cotangents]
        if structure != self._structure or [*map(_kind, leaves)] != [*map(_kind, made)]:
            raise Declined("cotangents of torch.func.vjp are not as the function's value")
        env = self._interpreter.env
        self._interpreter.env = {**env, **dict(zip(self._cotangents, leaves))}
        try:
            for node in self._graph.graph.nodes:
                if node in self._behind and node not in self._cotangents and node.op != "output":
                    self._interpreter.env[node] = self._interpreter.run_node(node)
            return self._value(self._interpreter.env)[2]
        finally:
            self._interpreter.env = env

    def _value(self, env: dict[torch.fx.Node, Any]) -> tuple[Any, list[Any], Any]:
        found: tuple[Any, list[Any], Any] = self._call.value([env.get(x) for x in self._results])
        return found


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
    """Whether torch calls the function that asks this, in the name of another function."""
    return sys._getframe(2).f_globals.get("__name__", "").partition(".")[0] == "torch"


@contextlib.contextmanager
def _no_grad_refused() -> Iterator[None]:
    """What it keeps from gradients is not seen from outside of the transform."""
    entered = torch.set_grad_enabled.__init__

    def run(self: torch.set_grad_enabled, mode: bool) -> None:
        if not mode and not _is_called_by_tracing():
            raise Declined("a transform of torch.func calls no_grad, and gradients are recorded")
        entered(self, mode)

    with patch.object(torch.set_grad_enabled, "__init__", run):
        yield


def _is_called_by_tracing() -> bool:
    """Whether the function that asks this was called, perhaps by `no_grad`, by what makes tensors
    without elements of a trace's constants, as of a second transform's in one call."""
    frame = sys._getframe(2)
    while frame.f_globals.get("__name__") == "torch.autograd.grad_mode" and frame.f_back:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).startswith("torch._subclasses.")
