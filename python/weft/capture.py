# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a module or function and one call's arguments to the graph of that call.

Everything that is known about how programs are captured lies here: today torch.export
traces them with fake tensors. The rest of the package sees `Root` and `trace`.
"""

from __future__ import annotations

import contextlib
import random
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from weft.signature import Declined, register_dataclasses


class Root(torch.nn.Module):
    """What is traced: the target with the modules and tensors that it reaches.

    modules: found in closures and globals; torch.export knows only tensors of submodules.
    fingerprint: of the state that the target must not change, other than through tensors.
    """

    def __init__(
        self,
        target: Callable[..., Any],
        modules: list[torch.nn.Module],
        tensors: list[torch.Tensor],
        fingerprint: Callable[[], Any],
    ) -> None:
        super().__init__()
        self.train(any(module.training for module in modules))
        # Not as a submodule of that name: a function's modules are the ones in `modules`.
        object.__setattr__(self, "_target", target)
        object.__setattr__(self, "_fingerprint", fingerprint)
        # Outside the module, since export puts attributes back as they were.
        object.__setattr__(self, "_observed", types.SimpleNamespace(effects=False))
        for number, module in enumerate(modules):
            self.add_module(f"m{number}", module)
        for number, tensor in enumerate(tensors):
            object.__setattr__(self, f"t{number}", tensor)

    @property
    def has_effects(self) -> bool:
        """Whether a call while tracing has changed the state, if only until its end."""
        return self._observed.effects

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        before = self._fingerprint()
        try:
            result = self._target(*args, **kwargs)
        finally:
            if self._fingerprint() != before:
                self._observed.effects = True
        register_dataclasses(result)
        return result


def trace(root: Root, args: tuple, kwargs: dict[str, Any]) -> torch.export.ExportedProgram:
    """The program of `root(*args, **kwargs)`, for exactly these shapes and values.

    Runs no kernel on the user's data and leaves torch's generators as they were.
    Raises: Declined, with the reason why there is no such program.
    """
    try:
        with _random_state_kept():
            return torch.export.export(root, args, kwargs, strict=False)
    except Exception as error:
        # Tracing runs the user's code on tensors without values; whatever it raises, the
        # eager call will tell the user what is really wrong, if anything is.
        raise Declined(f"torch.export: {_first_line(error)}", _user_line(error)) from error


@contextlib.contextmanager
def _random_state_kept() -> Iterator[None]:
    python_state = random.getstate()
    with torch.random.fork_rng(devices=[]):
        yield
    random.setstate(python_state)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _user_line(error: Exception) -> str | None:
    """The innermost frame of the traceback that is neither torch's nor ours."""
    ours = (__file__, torch.__path__[0])
    frames = traceback.extract_tb(error.__traceback__)
    users = [
        frame
        for frame in frames
        if not frame.filename.startswith(ours) and "/weft/" not in frame.filename
    ]
    return f"{users[-1].filename}:{users[-1].lineno}" if users else None
