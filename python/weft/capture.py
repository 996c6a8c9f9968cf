# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a module or function and one call's arguments to the graph of that call.

Everything that is known about how programs are captured lies here: today torch.export
traces them with fake tensors, in a copy of the process (isolated.py), so that nobody sees it. The
rest of the package sees `Tracing`, `Given`, `Captured`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import sys
import threading
import time
import traceback
import types
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree

from weft import frontend
from weft.compile_probes import Hearing, answers_as_in_eager
from weft.composites import composites_written_out
from weft.difference import Values, values_of
from weft.frontend.asking import strides_in_eager
from weft.frontend.fakes import fakes_completed
from weft.input_names import input_namer
from weft.isolated import call_isolated
from weft.observation import Observer
from weft.outputs import Structure
from weft.python_random import Draws
from weft.reachability import References, find_references
from weft.returned_objects import existing_objects, returns_objects, stand_in
from weft.signature import PLAIN, Declined, HasEffects, Heard, Signature, register_dataclasses
from weft.state import Snapshot, snapshot
from weft.traced_constants import KnownValues, keep_constants_live

# What tracing imports on the way is imported by the parent, lest every child do it again: these
# ahead of the first trace, and after each what else was needed.
_NEEDED_FOR_TRACING = ("torch._dynamo", "torch.export._trace", "torch._export.non_strict_utils")
_IMPORTED_FOR_TRACING = ("torch.", "sympy", "mpmath")


_Inputs = dict[frontend.InputSource, torch.Tensor]


@dataclass
class Captured:
    """A program and how to call it. resolve: finds the live tensor that it calls by a name.
    structure: of the value returned. strides: of its leaves, as eager execution has them, None for
    what is no tensor. digest: of the operations that the program called. lower_seconds: what the
    frontend took. warned: the call has warned, which the program does not."""

    lowered: frontend.Lowered
    resolve: Callable[[str], torch.Tensor]
    structure: Structure
    strides: tuple[tuple[int, ...] | None, ...]
    digest: str
    lower_seconds: float
    warned: bool = False


class Tracing:
    """Captures a module or function anew for each kind of call."""

    def __init__(self, target: Callable[..., Any]) -> None:
        self.target = target

    def references(self) -> References:
        return find_references(self.target)

    def resolver(self, references: References) -> Callable[[str], torch.Tensor]:
        """Finds the live tensor that programs call by a name."""
        return _Resolver(references)

    def values(
        self, args: tuple, kwargs: dict[str, Any], state: Snapshot, inputs: _Inputs
    ) -> Values:
        """What PyTorch computes op by op in the program of a call, of these inputs."""
        known = {**state.reached, **{id(each): each for each in inputs.values()}}
        trace = _Trace(self.target, self.references(), args, kwargs, True, False, known)
        return call_isolated(lambda: trace.values(inputs), known)

    def capture(
        self,
        args: tuple,
        kwargs: dict[str, Any],
        references: References,
        state: Snapshot,
        signature: Signature,
        training: bool = False,
    ) -> Captured:
        """The program of `target(*args, **kwargs)`, for exactly these shapes and values, as eager
        execution is, or where that cannot be compiled, as the program is written for compilers.

        references, state: of the target. training: it is to be differentiated. Runs no kernel on
        the user's data, and no code of the user's in this process.
        Raises: Declined, with the reason why there is no such program; HasEffects, if the
        target changed its state; frontend.Unsupported.
        """
        _import(_NEEDED_FOR_TRACING)
        known = {**state.reached, **{id(each): each for each in signature.examples}}

        as_eager, may_make_objects = True, False
        while True:
            trace = _Trace(
                self.target, references, args, kwargs, as_eager, may_make_objects, known, training
            )
            traced = call_isolated(trace.run, known)
            if traced.returns_objects and not may_make_objects:
                may_make_objects = True
            elif traced.only_as_eager and as_eager:
                as_eager = False
            else:
                break
        _import(traced.imported)
        if traced.failure is not None:
            raise traced.failure
        assert traced.lowered is not None and traced.structure is not None
        return Captured(
            traced.lowered,
            self.resolver(references),
            traced.structure,
            traced.strides,
            traced.digest,
            traced.lower_seconds,
            traced.warned,
        )


def _import(names: Iterable[str]) -> None:
    """On a thread of its own: a failed import within them keeps the frames that led to it, and so
    the user's model, until the cycle collector comes."""
    missing = [name for name in names if name not in sys.modules]
    if missing:
        importer = threading.Thread(target=_import_all, args=(missing,))
        importer.start()
        importer.join()


def _import_all(names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(Exception):  # it was imported beside something else
            importlib.import_module(name)


class _Resolver:
    """Finds a tensor by the name that `_Root` has for it."""

    def __init__(self, references: References) -> None:
        self._references = references

    def __call__(self, name: str) -> torch.Tensor:
        first, _, rest = name.partition(".")
        number = int(first[1:])
        if first[0] == "t":
            return self._references.tensors[number]
        path, _, attribute = rest.rpartition(".")
        return getattr(self._references.modules[number].get_submodule(path), attribute)


@dataclass
class _Traced:
    """What comes back from the child. returns_objects, only_as_eager: another attempt is due.
    imported: modules that came to be imported."""

    failure: Exception | None = None
    returns_objects: bool = False
    only_as_eager: bool = False
    lowered: frontend.Lowered | None = None
    structure: Structure | None = None
    strides: tuple[tuple[int, ...] | None, ...] = ()
    digest: str = ""
    lower_seconds: float = 0.0
    warned: bool = False
    imported: tuple[str, ...] = ()


@dataclass
class _Trace:
    """One attempt, for a process of its own. as_eager: the program hears what eager execution does
    if it asks whether it is compiled. may_make_objects: it returns objects that are no pytrees.
    known: objects that the parent has, too, by address."""

    target: Callable[..., Any]
    references: References
    args: tuple
    kwargs: dict[str, Any]
    as_eager: bool
    may_make_objects: bool
    known: dict[int, Any]
    training: bool = False

    def run(self) -> _Traced:
        before = set(sys.modules)
        traced = _Traced()
        try:
            self._export(traced)
        except (Declined, frontend.Unsupported) as why:
            traced.failure = why
        traced.imported = tuple(
            name for name in set(sys.modules) - before if name.startswith(_IMPORTED_FOR_TRACING)
        )
        return traced

    def _export(self, traced: _Traced) -> None:
        register_dataclasses((self.args, self.kwargs))
        existing = existing_objects() if self.may_make_objects else None
        observer = Observer()
        root = _Root(self.target, self.references, existing, observer)
        heard = answers_as_in_eager() if self.as_eager else contextlib.nullcontext(Hearing())
        with heard as hearing, fakes_completed(), warnings.catch_warnings():
            # What the call assigns we look after ourselves.
            warnings.filterwarnings("ignore", "The tensor attributes? .* assigned during export")
            observer.install(self.references.names, self.references.environment)
            try:
                program = self._exported(root)
            except Exception as error:
                # Tracing runs the user's code on tensors without values; whatever it raises,
                # the eager call tells the user what is really wrong, if anything is.
                _refuse_effects(root, observer)
                traced.returns_objects = root.observed.returns_objects
                traced.only_as_eager = hearing.untrue and not traced.returns_objects
                raise Declined(_reason(error), _user_line(error)) from None
            _refuse_effects(root, observer)
            traced.warned = observer.warned
            try:
                self._lower(program, traced)
            except frontend.Unsupported:
                traced.only_as_eager = hearing.untrue
                raise

    def values(self, inputs: _Inputs) -> Values:
        register_dataclasses((self.args, self.kwargs))
        root = _Root(self.target, self.references, None, Observer())
        with answers_as_in_eager(), fakes_completed():
            return values_of(self._exported(root), inputs)

    def _exported(self, root: _Root) -> torch.export.ExportedProgram:
        for function in self.references.code:
            # torch.export names only lines in functions called `forward` otherwise.
            torch.fx.proxy._register_stack_trace_anchor(function)
        with composites_written_out():
            program = torch.export.export(root, self.args, self.kwargs, strict=False)
        keep_constants_live(program.constants, self.known)
        return program

    def _lower(self, program: torch.export.ExportedProgram, traced: _Traced) -> None:
        namer = input_namer(self.target, self.args, self.kwargs)
        start = time.perf_counter()
        traced.lowered = frontend.lower(program, namer, self.training)
        traced.lower_seconds = time.perf_counter() - start
        traced.structure = Structure.of(program.call_spec.out_spec)
        traced.strides = strides_of(program)
        traced.digest = digest_of(program)


def digest_of(program: torch.export.ExportedProgram) -> str:
    """Equal for programs that call the same operations with the same arguments."""
    bodies = [
        str(module.graph)
        for module in program.graph_module.modules()
        if isinstance(module, torch.fx.GraphModule)
    ]
    return hashlib.blake2b("\n".join(bodies).encode(), digest_size=16).hexdigest()


def strides_of(program: torch.export.ExportedProgram) -> tuple[tuple[int, ...] | None, ...]:
    """Of the leaves of the value returned."""
    (output,) = program.graph.find_nodes(op="output")
    kinds = program.graph_signature.output_specs
    user = [
        node
        for node, spec in zip(output.args[0], kinds, strict=True)
        if spec.kind == torch.export.graph_signature.OutputKind.USER_OUTPUT
    ]
    return tuple(
        strides_in_eager(node)
        if isinstance(node, torch.fx.Node) and isinstance(node.meta.get("val"), torch.Tensor)
        else None
        for node in user
    )


class Given:
    """Captures nothing: the program was exported by the user."""

    def __init__(self, program: torch.export.ExportedProgram) -> None:
        self.program = program

    def references(self) -> References:
        return References(tensors=[*self.program.state_dict.values()])

    def resolver(self, references: References) -> Callable[[str], torch.Tensor]:
        return self._tensor

    def values(
        self, args: tuple, kwargs: dict[str, Any], state: Snapshot, inputs: _Inputs
    ) -> Values:
        return values_of(self.program, inputs)

    def capture(
        self,
        args: tuple,
        kwargs: dict[str, Any],
        references: References,
        state: Snapshot,
        signature: Signature,
        training: bool = False,
    ) -> Captured:
        """Raises: Declined, if the call is not the one that was exported."""
        leaves, structure = pytree.tree_flatten((args, kwargs))
        if structure != self.program.call_spec.in_spec:
            raise Declined("the program was exported for other arguments")
        placeholders = self.program.graph.find_nodes(op="placeholder")
        for node, leaf in zip(placeholders[-len(leaves) :] if leaves else (), leaves, strict=True):
            if not _is_like(leaf, node.meta["val"]):
                raise Declined(f"the program was exported for another {node.name}")
        start = time.perf_counter()
        lowered = frontend.lower(self.program, training=training)
        seconds = time.perf_counter() - start
        structure = Structure.of(self.program.call_spec.out_spec)
        strides, digest = strides_of(self.program), digest_of(self.program)
        return Captured(lowered, self.resolver(references), structure, strides, digest, seconds)

    def _tensor(self, name: str) -> torch.Tensor:
        found = self.program.state_dict.get(name)
        return self.program.constants[name] if found is None else found


class NotCaptured:
    """There is no program, for a reason that holds for all calls."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def references(self) -> References:
        return References()

    def resolver(self, references: References) -> Callable[[str], torch.Tensor]:
        raise KeyError(self.reason)

    def capture(self, *call: Any) -> Captured:
        """Raises: Declined."""
        raise Declined(self.reason)


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

    def __init__(
        self,
        target: Callable[..., Any],
        references: References,
        existing: list[Any] | None,
        observer: Observer,
    ) -> None:
        super().__init__()
        self.train(any(module.training for module in references.modules))
        # Not submodules: a function's modules are those of the references.
        object.__setattr__(self, "_target", target)
        object.__setattr__(self, "_references", references)
        object.__setattr__(self, "_tensors", _named_tensors(references.modules))
        # In an object, since export puts attributes and containers back as they were.
        observed = types.SimpleNamespace(
            effects=False,
            modes=False,
            returns_objects=False,
            existing=existing,
            draws=Draws(),
            listening=observer.listening,
        )
        object.__setattr__(self, "observed", observed)
        for number, module in enumerate(references.modules):
            self._modules[f"m{number}"] = module
        for number, tensor in enumerate(references.tensors):
            object.__setattr__(self, f"t{number}", tensor)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        fakes = self._fakes()
        before, arguments = self._state(fakes), _Arguments(args, kwargs)
        modes = _modes()
        try:
            with (
                self.observed.draws.watched(before.generators),
                KnownValues(),
                self.observed.listening(),
            ):
                result = self._target(*args, **kwargs)
        finally:
            self.observed.modes = modes != _modes()
            bound = before.bindings.hold() and arguments.hold()
            if not bound or not self._state(fakes).same_as(before):
                self.observed.effects = True
        register_dataclasses(result)
        self._refuse_given(result, arguments.containers() | set(before.reached), fakes)
        if not returns_objects(result):
            return result
        if self.observed.existing is None:
            self.observed.returns_objects = True
            raise _ReturnsObjects
        return stand_in(result, self.observed.existing)

    def _refuse_given(
        self, result: Any, containers: set[int], fakes: dict[int, torch.Tensor]
    ) -> None:
        """Programs make their containers anew, and tensors that require no gradients.

        containers: addresses of those that there were before the call.
        Raises: Declined.
        """
        for node in _nodes(result):
            if isinstance(node, torch.Tensor):
                given = id(node) in fakes or id(node) in containers
                if node.requires_grad and not given and not torch.is_grad_enabled():
                    raise Declined("a result is made to require gradients")
            elif not isinstance(node, tuple) and type(node) not in PLAIN and id(node) in containers:
                if not _is_leaf(node):
                    raise Declined("the call returns a container that it has not made")

    def _fakes(self) -> dict[int, torch.Tensor]:
        """The tensors that export has put in the place of others. A recurrent net keeps a
        list of its parameters, which it renews when it finds them replaced."""
        fakes = {}
        for named, name, tensor in self._tensors:
            fake = named[name]
            fakes[id(fake)] = tensor
            for attribute, value in vars(tensor).items():
                vars(fake).setdefault(attribute, value)
        return fakes

    def _state(self, originals: dict[int, Any]) -> Snapshot:
        # The tracer must not see that reading the state switches gradients off and on: it
        # would cut the program in pieces, one for each tensor.
        with torch._C.DisableTorchFunction():
            return snapshot(self._references, originals)


def _modes() -> tuple:
    """torch's own settings, which a call may leave otherwise than it found them."""
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        torch.get_num_threads(),
        torch.backends.mha.get_fastpath_enabled(),
    )


class _Arguments:
    """The arguments' containers, and the attributes of their tensors, as they are at first."""

    def __init__(self, args: tuple, kwargs: dict[str, Any]) -> None:
        self._call = (args, kwargs)
        self._leaves, self._structure = pytree.tree_flatten(self._call)
        self._attributes = [_attributes(leaf) for leaf in self._leaves]

    def containers(self) -> set[int]:
        """Addresses of all that is within the arguments, tensors among them."""
        return {id(node) for node in _nodes(self._call)}

    def hold(self) -> bool:
        leaves, structure = pytree.tree_flatten(self._call)
        return (
            structure == self._structure
            and all(now is before for now, before in zip(leaves, self._leaves, strict=True))
            and [_attributes(leaf) for leaf in leaves] == self._attributes
        )


def _nodes(value: Any) -> list[Any]:
    """A pytree's nodes and leaves."""
    nodes: list[Any] = []
    pytree.tree_leaves(value, is_leaf=lambda node: nodes.append(node) is not None)
    return nodes


def _is_leaf(node: Any) -> bool:
    return pytree._get_node_type(node) not in pytree.SUPPORTED_NODES


def _attributes(leaf: Any) -> set[str]:
    return set(vars(leaf)) if isinstance(leaf, torch.Tensor) else set()


def _named_tensors(modules: list[torch.nn.Module]) -> list[tuple[dict, str, torch.Tensor]]:
    return [
        (named, name, tensor)
        for module in modules
        for child in module.modules()
        for named in (child._parameters, child._buffers)
        for name, tensor in named.items()
        if tensor is not None
    ]


def _refuse_effects(root: _Root, observer: Observer) -> None:
    if root.observed.effects:
        raise HasEffects("the call changes attributes of the module, its arguments or globals")
    if root.observed.modes:
        raise Declined("the call leaves torch's settings otherwise than it finds them")
    if observer.reason is not None:
        raise Heard(observer.reason)
    if root.observed.draws.found:
        raise Declined("the call sets a seed, or draws from Python's or NumPy's generators")


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
