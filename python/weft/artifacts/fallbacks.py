# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program's fallbacks, the ops that PyTorch's own kernels compute inside it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from weft import _core
from weft.artifacts.dispatcher import describe_call
from weft.frontend.fallback import call_fallback, overload_of

Fallback = Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor]], None]


def torch_host(manifest: dict[str, Any]) -> _core.TorchHost | None:
    """What runs the fallbacks of the manifest, None where it has none."""
    if not manifest["fallbacks"]:
        return None
    host = _core.TorchHost()
    for entry in manifest["fallbacks"]:
        call = (entry["target"], entry["arguments"])
        host.add(_function(*call), describe_call(*call))
    return host


def draws_random_numbers(manifest: dict[str, Any]) -> bool:
    return any(
        torch.Tag.nondeterministic_seeded in overload_of(entry["target"]).tags
        for entry in manifest["fallbacks"]
    )


def _function(target: str, arguments: str) -> Fallback:
    call = call_fallback(target, arguments)

    def run(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
        with _as_in_the_graph():
            results = call(inputs)
            for output, result in zip(outputs, results, strict=True):
                if output.shape != result.shape:
                    raise RuntimeError(
                        f"{target}: expected a result of shape {tuple(output.shape)}, "
                        f"found {tuple(result.shape)}"
                    )
                output.copy_(result)

    return run


@contextlib.contextmanager
def _as_in_the_graph() -> Iterator[None]:
    """Autocast's conversions are ops of the graph already, and gradients none of it."""
    with contextlib.ExitStack() as stack:
        if torch.is_grad_enabled():
            stack.enter_context(torch.no_grad())
        if torch.is_autocast_enabled("cpu"):
            stack.enter_context(torch.autocast("cpu", enabled=False))
        yield
