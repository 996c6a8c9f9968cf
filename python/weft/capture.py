# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a module or function and one call's arguments to the graph of that call.

Everything that is known about how programs are captured lies here: today torch.export
traces them with fake tensors. The rest of the package sees `Tracing`, `Given`, `Captured`.
"""

from __future__ import annotations

import contextlib
import random
import threading
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree

from weft.frontend import InputSource
from weft.frontend.fakes import fakes_completed
from weft.generators import Draws
from weft.known import KnownValues
from weft.made import existing_objects, returns_objects, stand_in
from weft.modes import Hearing, answers_as_in_eager
from weft.naming import input_namer
from weft.references import References, find_references
from weft.replica import Replica, replicate
from weft.signature import Declined, HasEffects, OnlyAsEager, register_dataclasses
from weft.state import Snapshot, snapshot

_TRACING = threading.RLock()  # torch.export changes what the whole process sees
_SEED = 0x9E3779B97F4A7C15  # that no call sets itself, or we would not see that it does


@dataclass
class Captured:
    """A program, how to find the live tensor that it calls by a name, and what the user
    calls an input (None: what the program does). as_eager: it asked whether it is compiled, and
    heard what eager execution hears."""

    program: torch.export.ExportedProgram
    resolve: Callable[[str], torch.Tensor]
    name: Callable[[InputSource], str | None] = lambda source: None
    as_eager: bool = False


class Tracing:
    """Captures a module or function anew for each kind of call."""

    def __init__(self, target: Callable[..., Any]) -> None:
        self.target = target

    def references(self) -> References:
        return find_references(self.target)

    def capture(self, args: tuple, kwargs: dict[str, Any], *, as_eager: bool = True) -> Captured:
        """The program of `target(*args, **kwargs)`, for exactly these shapes and values.

        as_eager: it hears what eager execution would if it asks whether it is compiled.

        Runs no kernel on the user's data and leaves torch's generators as they were. What
        the target is and reaches may be changed afterwards, if it could not be replicated.
        Raises: Declined, with the reason why there is no such program; HasEffects, if the
        target changed its state; OnlyAsEager, if there may be one of what it does for compilers.
        """
        with _TRACING:
            try:
                return self._trace(args, kwargs, as_eager=as_eager)
            except _ReturnsObjects:
                # To know which of them the call has made, we have to know what was there before.
                return self._trace(args, kwargs, may_make_objects=True, as_eager=as_eager)

    def _trace(
        self,
        args: tuple,
        kwargs: dict[str, Any],
        *,
        may_make_objects: bool = False,
        as_eager: bool = True,
    ) -> Captured:
        references = self.references()
        root = _Root(replicate(self.target, references))
        if may_make_objects:
            root._observed.existing = existing_objects()
        for function in references.code:
            # torch.export names only lines in functions called `forward` otherwise.
            torch.fx.proxy._register_stack_trace_anchor(function)
        try:
            with (
                _random_state_kept(),
                answers_as_in_eager() if as_eager else contextlib.nullcontext(Hearing()) as hearing,
                fakes_completed(),
                warnings.catch_warnings(),
            ):
                # What the call assigns we look after ourselves.
                warnings.filterwarnings(
                    "ignore", "The tensor attributes? .* assigned during export"
                )
                program = torch.export.export(root, args, kwargs, strict=False)
        except Exception as error:
            # Tracing runs the user's code on tensors without values; whatever it raises,
            # the eager call will tell the user what is really wrong, if anything is.
            _refuse_effects(root)
            if root._observed.returns_objects:
                raise _ReturnsObjects from error
            if hearing.untrue:
                raise OnlyAsEager from error
            raise Declined(_reason(error), _user_line(error)) from error
        finally:
            root._observed.existing = None
        _refuse_effects(root)
        namer = input_namer(self.target, args, kwargs)
        return Captured(program, root.tensor, namer, hearing.untrue)


class Given:
    """Captures nothing: the program was exported by the user."""

    def __init__(self, program: torch.export.ExportedProgram) -> None:
        self.program = program

    def references(self) -> References:
        return References(tensors=[*self.program.state_dict.values()])

    def capture(self, args: tuple, kwargs: dict[str, Any], *, as_eager: bool = True) -> Captured:
        """Raises: Declined, if the call is not the one that was exported."""
        leaves, structure = pytree.tree_flatten((args, kwargs))
        if structure != self.program.call_spec.in_spec:
            raise Declined("the program was exported for other arguments")
        placeholders = self.program.graph.find_nodes(op="placeholder")
        for node, leaf in zip(placeholders[-len(leaves) :] if leaves else (), leaves, strict=True):
            if not _is_like(leaf, node.meta["val"]):
                raise Declined(f"the program was exported for another {node.name}")
        return Captured(self.program, self._tensor)

    def _tensor(self, name: str) -> torch.Tensor:
        found = self.program.state_dict.get(name)
        return self.program.constants[name] if found is None else found


def _is_like(leaf: Any, example: Any) -> bool:
    if not isinstance(leaf, torch.Tensor):
        return type(leaf) is type(example) and leaf == example
    return (
        isinstance(example, torch.Tensor)
        and leaf.dtype == example.dtype
        and tuple(leaf.shape) == tuple(example.shape)
        and leaf.stride() == example.stride()
    )


class _ReturnsObjects(Exception):
    """The call returns objects that no pytree describes, which it may have made."""


class _Root(torch.nn.Module):
    """What is traced: the target with the modules and tensors that it reaches, since
    torch.export knows only tensors of submodules."""

    def __init__(self, replica: Replica) -> None:
        super().__init__()
        references = replica.references
        self.train(any(module.training for module in references.modules))
        # Not submodules: a function's modules are those of the references.
        object.__setattr__(self, "_replica", replica)
        object.__setattr__(self, "_tensors", _named_tensors(references.modules))
        # In an object, since export puts attributes and containers back as they were.
        observed = types.SimpleNamespace(
            effects=False, returns_objects=False, existing=None, draws=Draws()
        )
        object.__setattr__(self, "_observed", observed)
        for number, module in enumerate(references.modules):
            self._modules[f"m{number}"] = module
        for number, tensor in enumerate(references.tensors):
            object.__setattr__(self, f"t{number}", tensor)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        originals = {**self._replica.originals, **self._fakes()}
        before = self._state(originals)
        try:
            with self._observed.draws.watched(before.generators), KnownValues():
                result = self._replica.target(*args, **kwargs)
        finally:
            if not before.bindings.hold() or self._state(originals).key != before.key:
                self._observed.effects = True
        register_dataclasses(result)
        if not returns_objects(result):
            return result
        if self._observed.existing is None:
            self._observed.returns_objects = True
            raise _ReturnsObjects
        return stand_in(result, self._observed.existing)

    def tensor(self, name: str) -> torch.Tensor:
        *path, attribute = name.split(".")
        return getattr(self.get_submodule(".".join(path)), attribute)

    def _fakes(self) -> dict[int, torch.Tensor]:
        """The tensors that export has put in the place of others. A recurrent net keeps a
        list of its parameters, which it renews when it finds them replaced."""
        return {id(named[name]): tensor for named, name, tensor in self._tensors}

    def _state(self, originals: dict[int, Any]) -> Snapshot:
        # The tracer must not see that reading the state switches gradients off and on: it
        # would cut the program in pieces, one for each tensor.
        with torch._C.DisableTorchFunction():
            return snapshot(self._replica.references, originals)


def _named_tensors(modules: list[torch.nn.Module]) -> list[tuple[dict, str, torch.Tensor]]:
    return [
        (named, name, tensor)
        for module in modules
        for child in module.modules()
        for named in (child._parameters, child._buffers)
        for name, tensor in named.items()
        if tensor is not None
    ]


def _refuse_effects(root: _Root) -> None:
    if root._observed.effects:
        raise HasEffects("the call changes attributes of the module or globals")
    if root._observed.draws.found:
        raise Declined("the call sets a seed, or draws from Python's or NumPy's generators")


@contextlib.contextmanager
def _random_state_kept() -> Iterator[None]:
    python_state = random.getstate()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_SEED)  # no other device's
        yield
    random.setstate(python_state)


def _reason(error: Exception) -> str:
    if isinstance(error, Declined):
        return error.reason
    return f"torch.export: {_first_line(error)}"


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
