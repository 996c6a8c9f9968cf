# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is around a call: modes of torch, settings of the process, how it is called."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

Surrounding = Callable[[], contextlib.AbstractContextManager]


class _DoublingFunctions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        return result * 2 if function in (torch.mul, torch.Tensor.mul) else result


class _DoublingOperators(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        return result * 2 if function is torch.ops.aten.mul.Tensor else result


@contextlib.contextmanager
def _setting(set_to: Callable[[Any], Any], old: Any, new: Any) -> Iterator[None]:
    set_to(new)
    try:
        yield
    finally:
        set_to(old)


@contextlib.contextmanager
def _hook_on_all_modules() -> Iterator[None]:
    def hook(module: Any, args: Any, output: Any) -> Any:
        return output * 2 if isinstance(output, torch.Tensor) else output

    handle = torch.nn.modules.module.register_module_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@contextlib.contextmanager
def _patched(owner: Any, name: str) -> Iterator[None]:
    old = getattr(owner, name)
    own = name in vars(owner)
    setattr(owner, name, lambda *args, **kwargs: old(*args, **kwargs) * 2)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, old)
        else:
            delattr(owner, name)


def _hooks_on_saved_tensors() -> contextlib.AbstractContextManager:
    return torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)


SURROUNDINGS: dict[str, Surrounding] = {
    "gradients": torch.enable_grad,
    "no gradients": torch.no_grad,
    "inference mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "default dtype": lambda: _setting(torch.set_default_dtype, torch.float32, torch.float64),
    "default device": lambda: torch.device("meta"),
    "anomaly mode": lambda: torch.autograd.set_detect_anomaly(True, check_nan=False),
    "deterministic algorithms": lambda: _setting(torch.use_deterministic_algorithms, False, True),
    "matmul precision": lambda: _setting(
        torch.set_float32_matmul_precision, torch.get_float32_matmul_precision(), "medium"
    ),
    "no fast path of attention": lambda: _setting(
        torch.backends.mha.set_fastpath_enabled, True, False
    ),
    "function mode": _DoublingFunctions,
    "dispatch mode": _DoublingOperators,
    "fake tensors": lambda: FakeTensorMode(allow_non_fake_inputs=True),
    "hooks on saved tensors": _hooks_on_saved_tensors,
    "hook on all modules": _hook_on_all_modules,
    "no torch function": torch._C.DisableTorchFunctionSubclass,
    "forward derivatives": torch.autograd.forward_ad.dual_level,
    "torch.relu patched": lambda: _patched(torch, "relu"),
    "F.relu patched": lambda: _patched(torch.nn.functional, "relu"),
    "F.linear patched": lambda: _patched(torch.nn.functional, "linear"),
    "Linear.forward patched": lambda: _patched(torch.nn.Linear, "forward"),
    "Tensor.sum patched": lambda: _patched(torch.Tensor, "sum"),
    "Tensor.__mul__ patched": lambda: _patched(torch.Tensor, "__mul__"),
}


def _in_a_thread(function: Callable[[], Any]) -> Any:
    """Thread-local modes are the defaults there: gradients on."""
    outcome: list[tuple[Any, BaseException | None]] = []

    def run() -> None:
        try:
            outcome.append((function(), None))
        except Exception as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


def plainly(target: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    return target(*args, **kwargs)


def _under_vmap(target: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    def one(*args: Any) -> Any:
        return target(*args, **kwargs)

    return torch.vmap(one)(*(torch.stack([each, each]) for each in args))


def _under_grad(target: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    def total(*args: Any) -> Any:
        return sum(each.sum() for each in torch.utils._pytree.tree_leaves(target(*args, **kwargs)))

    return torch.func.grad(total)(*args)


STYLES: dict[str, Callable[[Callable, tuple, dict[str, Any]], Any]] = {
    "in a thread": lambda target, args, kwargs: _in_a_thread(lambda: target(*args, **kwargs)),
    "under vmap": _under_vmap,
    "under torch.func.grad": _under_grad,
}
