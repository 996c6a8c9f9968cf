# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What torch.export is given to trace: the target with all that it reaches, watched for what no
program does, such as writes to attributes."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._subclasses import FakeTensor

from weft.capture import remembered_calls
from weft.capture.argument_changes import Before, Changed, Filled
from weft.capture.argument_objects import (
    NO_COUNTERS,
    Counters,
    NoRecipe,
    objects_in,
    with_given,
)
from weft.capture.autograd_reach import reached_tensors
from weft.capture.data_reads import DataReads
from weft.capture.eager_builtins import eager_builtins
from weft.capture.gradient_flags import GradientFlags
from weft.capture.lengths_as_data import LengthsAsData
from weft.capture.observation import Observer
from weft.capture.packed_sequences import PackedSequences
from weft.capture.places_of_changes import (
    GRADIENTS,
    RANDOM,
    SETTINGS,
    place_of,
    place_of_change,
)
from weft.capture.python_random import Draws
from weft.capture.reachability import References
from weft.capture.repeated_steps import RepeatedSteps
from weft.capture.returned_objects import returns_objects, stand_in
from weft.capture.signature import (
    PLAIN,
    ChangesArgument,
    Declined,
    HasEffects,
    Heard,
    Same,
    attributes_of_fake,
    own_attributes,
    register_dataclasses,
)
from weft.capture.snapshots import Snapshot
from weft.capture.state import snapshot
from weft.capture.trace_listener import take_arguments
from weft.capture.traced_constants import KnownValues
from weft.capture.traced_numbers import NumbersOfTrace, fixed


class _ReturnsObjects(Exception):
    """The call returns objects that no pytree describes, which it may have made."""


class TracedRoot(torch.nn.Module):
    """What is traced: the target with the modules and tensors that it reaches, since
    torch.export knows only tensors of submodules."""

    def __init__(
        self,
        target: Callable[..., Any],
        references: References,
        existing: list[Any] | None,
        observer: Observer,
        kinds: set[type],
        call: tuple[tuple, dict[str, Any]],
        counters: Counters = NO_COUNTERS,
        loops: RepeatedSteps | None = None,
        numbers: NumbersOfTrace | None = None,
        any_lengths: bool = False,
    ) -> None:
        """loops: of Python, which are traced for some of their steps alone. numbers: among the
        arguments, which the program takes. any_lengths: packed sequences have any."""
        super().__init__()
        self.train(any(module.training for module in references.modules))
        # Not submodules: a function's modules are those of the references.
        object.__setattr__(self, "_target", target)
        object.__setattr__(self, "_references", references)
        object.__setattr__(self, "_kinds", kinds)
        object.__setattr__(self, "_call", call)
        object.__setattr__(self, "_counters", counters)
        object.__setattr__(self, "_packs", LengthsAsData if any_lengths else PackedSequences)
        object.__setattr__(self, "_tensors", _named_tensors(references.modules))
        # In an object, since export puts attributes and containers back as they were.
        observed = types.SimpleNamespace(
            effects=False,
            changes_at=None,
            changed_argument=None,
            has_changes=False,
            grows=False,
            filled=None,
            modes=False,
            fills_gradients=False,
            returns_objects=False,
            existing=existing,
            draws=Draws(),
            observer=observer,
            read={},
            reached=[],
            loops=loops,
            numbers=numbers,
        )
        if numbers is not None:
            numbers.enter(self)
        object.__setattr__(self, "observed", observed)
        for number, module in enumerate(references.modules):
            self._modules[f"m{number}"] = module
        for number, tensor in enumerate(references.tensors):
            object.__setattr__(self, f"t{number}", tensor)

    @property
    def skipped_steps(self) -> bool:
        loops = self.observed.loops
        return loops is not None and loops.found > 0

    @property
    def repeats(self) -> bool:
        """Whether the program seems to have a loop."""
        loops = self.observed.loops
        return loops is not None and loops.noticed

    @property
    def numbers_of_loops(self) -> int:
        """How many sizes were to be symbols, and were numbers where the program had a loop, at
        which the trace has ended."""
        loops = self.observed.loops
        return 0 if loops is None else loops.numbers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        fakes = self._fakes()
        numbers = self.observed.numbers
        if numbers is not None:
            args, kwargs = numbers.arguments(args, kwargs)
            numbers.place()
        before, arguments = (
            self._state(fakes),
            _Arguments(args, kwargs, self._kinds, self._counters),
        )
        modes, answered = _modes(), remembered_calls.answered(before.reached.values())
        leaves = pytree.tree_leaves((args, kwargs))
        take_arguments(each for each in leaves if id(each) not in fakes)
        gradients = self._gradients(leaves)
        tensors = self._given(leaves)
        ranks = [each.dim() for each in tensors]
        vectors = {} if numbers is None else numbers.vectors
        packs = self._packs(leaves, pytree.tree_leaves(self._call), self._call, vectors)
        object.__setattr__(self.observed, "read", packs.read)
        data = DataReads()
        flags = GradientFlags((*(named[name] for named, name, _ in self._tensors), *leaves))
        try:
            with (
                self.observed.draws.watched(before.generators),
                KnownValues(),
                data,
                flags,
                packs,
                self.observed.loops or contextlib.nullcontext(),
            ):
                with self.observed.observer.listening(), eager_builtins():
                    with contextlib.nullcontext() if numbers is None else numbers.watched():
                        result = self._target(*args, **kwargs)
                    if self.stands_for_numbers:
                        self._refuse_mistakes()
                packs.check(pytree.tree_leaves(result))
                if numbers is not None:
                    result = fixed(result)
                if self.observed.loops is not None:
                    register_dataclasses(result)
                    result = self.observed.loops.finish(result)
        finally:
            if numbers is not None and not numbers.are_in_place():
                self.observed.effects = True
            self.observed.modes = modes != _modes()
            self._notice_answers(before, answered)
            self.observed.fills_gradients = gradients != self._gradients(leaves)
            bound = before.bindings.hold() and arguments.hold()
            after = self._state(fakes)
            if not bound or not after.same_as(before):
                self.observed.effects = True
                self.observed.changes_at = place_of_change(self._references, before, after)
            if numbers is not None:
                numbers.put_back()
        if ranks != [each.dim() for each in tensors]:
            raise Declined("an argument or weight is given another number of dimensions in place")
        register_dataclasses(result)
        objects = arguments.objects
        containers = (arguments.containers() | set(before.reached)) - set(map(id, objects))
        try:
            changed = arguments.changes()
        except NoRecipe as why:
            self.observed.changed_argument = str(why)
            raise Declined(f"the call changes an argument to hold {why}") from None
        _refuse_given([result, changed.tensors], containers, fakes)
        if objects:
            result = with_given(result, objects)
        if returns_objects(result):
            if self.observed.existing is None:
                self.observed.returns_objects = True
                raise _ReturnsObjects
            result = stand_in(result, self.observed.existing)
        data.check(pytree.tree_leaves([result, changed.tensors]))
        if self.observed.loops is not None:
            self.observed.loops.check(pytree.tree_leaves([result, changed.tensors]))
        if not self.skipped_steps:  # what stands for their results has no history
            flags.check(pytree.tree_leaves([result, changed.tensors]))
        if not any(changed.changes):
            given = zip(leaves, pytree.tree_leaves(self._call), strict=True)
            originals = {**fakes, **{id(fake): tensor for fake, tensor in given}}
            self.observed.reached = reached_tensors(pytree.tree_leaves(result), originals)
            return result
        self.observed.has_changes, self.observed.grows = True, arguments.grows(changed)
        self.observed.filled = arguments.filled(changed)
        changed.result = result
        return changed

    @property
    def stands_for_numbers(self) -> bool:
        """Whether objects stand for numbers, which code in C may refuse."""
        return self.observed.numbers is not None

    def _refuse_mistakes(self) -> None:
        mistaken = self.observed.observer.mistaken
        if mistaken is not None:
            raise Declined(f"{mistaken}, which a number may have caused")

    def _notice_answers(self, before: Snapshot, answered: int) -> None:
        """No program counts for `cache_info()`, or notes what has been asked for last."""
        observer = self.observed.observer
        if remembered_calls.answered(before.reached.values()) != answered:
            observer.reason = observer.reason or "a cache counts what the call asks of it"

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

    def _given(self, leaves: list[Any]) -> list[torch.Tensor]:
        """The tensors that are no results of the call."""
        named = (named[name] for named, name, _ in self._tensors)
        return [*named, *(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))]

    def _gradients(self, leaves: list[Any]) -> list[tuple[Same, int]]:
        """Which gradients tensors have that the call has not made, and their versions: what a
        backward within the call fills, or adds to."""
        constants = [vars(self)[f"t{number}"] for number in range(len(self._references.tensors))]
        found = [each.grad for each in (*self._given(leaves), *constants) if each.is_leaf]
        return [(Same(grad), 0 if grad is None else grad._version) for grad in found]

    def _state(self, originals: dict[int, Any]) -> Snapshot:
        # The tracer must not see that reading the state switches gradients off and on: it
        # would cut the program in pieces, one for each tensor.
        with torch._C.DisableTorchFunction():
            numbers = self.observed.numbers
            return snapshot(self._references, originals, () if numbers is None else numbers.free)


def _refuse_given(result: Any, containers: set[int], fakes: dict[int, torch.Tensor]) -> None:
    """Programs make their containers anew, and plain tensors.

    containers: addresses of those that there were before the call, and of its tensors.
    Raises: Declined.
    """
    for node in _nodes(result):
        given = id(node) in containers or id(node) in fakes
        if isinstance(node, FakeTensor) and not given:
            if attributes_of_fake(node) or (node.is_leaf and node.grad is not None):
                raise Declined("a tensor that it returns is given attributes")
            if isinstance(node, torch.nn.Parameter):
                raise Declined("it returns a parameter that it makes")
        elif isinstance(node, (torch.Tensor, tuple)) or type(node) in PLAIN:
            continue
        elif given and not _is_leaf(node):
            raise Declined("the call returns a container that it has not made")


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

    def __init__(
        self, args: tuple, kwargs: dict[str, Any], kinds: set[type], counters: Counters
    ) -> None:
        """kinds: classes of objects that are pytrees for the trace alone."""
        self._call = (args, kwargs)
        self.objects = objects_in(self._call, kinds)
        self._before = [Before(each, counters) for each in self.objects]
        self._tensors = pytree.tree_leaves(self._call)
        self._attributes = [_attributes(leaf) for leaf in self._tensors]
        self._leaves, self._structure = self._flat()

    def containers(self) -> set[int]:
        """Addresses of all that is within the arguments, tensors among them."""
        return {id(node) for node in _nodes(self._call)}

    def _flat(self) -> tuple[list[Any], pytree.TreeSpec]:
        """Objects are leaves."""
        own = set(map(id, self.objects))
        return pytree.tree_flatten(self._call, is_leaf=lambda node: id(node) in own)

    def changes(self) -> Changed:
        """Of the objects. Raises: NoRecipe."""
        tensors: list[torch.Tensor] = []
        return Changed(None, tensors, tuple(each.changes(tensors) for each in self._before))

    def grows(self, changed: Changed) -> bool:
        """Whether an object is given tensors of other sizes than those that they replace."""
        return any(
            before.resized(own, changed.tensors)
            for before, own in zip(self._before, changed.changes, strict=True)
        )

    def filled(self, changed: Changed) -> Filled:
        """What objects are given in which nothing was."""
        found = [
            before.filled(own, changed.tensors)
            for before, own in zip(self._before, changed.changes, strict=True)
        ]
        return Filled(
            frozenset().union(*(each.sizes for each in found)),
            frozenset().union(*(each.counters for each in found)),
        )

    def hold(self) -> bool:
        """But for what objects hold."""
        leaves, structure = self._flat()
        return (
            structure == self._structure
            and all(now is before for now, before in zip(leaves, self._leaves, strict=True))
            and [_attributes(leaf) for leaf in self._tensors] == self._attributes
        )


def _nodes(value: Any) -> list[Any]:
    """A pytree's nodes and leaves."""
    nodes: list[Any] = []
    pytree.tree_leaves(value, is_leaf=lambda node: nodes.append(node) is not None)
    return nodes


def _is_leaf(node: Any) -> bool:
    return pytree._get_node_type(node) not in pytree.SUPPORTED_NODES


# What torch keeps on a tensor once C++ has asked for its sizes.
_OF_SIZES = frozenset(("_sizes_capsule", "_sizes_capsule_len"))


def _attributes(leaf: Any) -> set[str]:
    return set(own_attributes(leaf)) - _OF_SIZES if isinstance(leaf, torch.Tensor) else set()


def _named_tensors(modules: list[torch.nn.Module]) -> list[tuple[dict, str, torch.Tensor]]:
    return [
        (named, name, tensor)
        for module in modules
        for child in module.modules()
        for named in (child._parameters, child._buffers)
        for name, tensor in named.items()
        if tensor is not None
    ]


def refuse_effects(root: TracedRoot, observer: Observer) -> None:
    """Raises: Declined, where the call has done what no program does."""
    if root.observed.changed_argument is not None:
        what = root.observed.changed_argument
        raise ChangesArgument(
            f"the call changes attributes of an argument, which then holds {what}",
            place_of(root._references, ()),
        )
    if root.observed.fills_gradients:
        raise HasEffects(
            "the call fills gradients of tensors that it has not made: give the model alone to "
            "weft.compile, or model, loss and optimizer to weft.compile_step",
            place_of(root._references, GRADIENTS),
        )
    if root.observed.effects:
        raise HasEffects(
            "the call changes attributes of the module, its arguments or globals",
            root.observed.changes_at,
        )
    if root.observed.modes:
        raise Declined(
            "the call leaves torch's settings otherwise than it finds them",
            place_of(root._references, SETTINGS),
        )
    if observer.reason is not None:
        raise Heard(observer.reason)
    if root.observed.draws.found:
        raise Declined(
            "the call sets a seed, or draws from Python's or NumPy's generators",
            place_of(root._references, RANDOM),
        )
