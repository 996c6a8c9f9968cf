# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A call's arguments as a pattern.

The tuples made here are what `weft._core.Specialization` reads; Pattern.h defines them.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree

from weft import _core, errors
from weft.frontend.dtypes import NAMES
from weft.frontend.pairs import REAL_OF

# Pattern.h
TENSOR, VALUE, TUPLE, LIST, DICT, NODE = range(6)

PLAIN = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)


class Same:
    """Compares by identity and keeps the object alive, so that its address stays its own."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class Declined(errors.CaptureError):
    """The call, its arguments or the state that it reads are nothing that a program stands for.

    Attributes: type (of an argument with which no call is compiled, or None).
    """

    def __init__(
        self,
        reason: str,
        location: str | None = None,
        type: type | None = None,
        op: str | None = None,
    ) -> None:
        super().__init__(reason, location, op)
        self.type = type


class HasEffects(Declined):
    """The call changes the state of Python objects, which no program does."""


class ChangesArgument(Declined):
    """The call changes attributes of an object among its arguments."""


class Heard(Declined):
    """The call prints, logs or looks for a module, which it may do the first time alone."""


# By the number of a leaf.
Read = Mapping[int, Callable[[torch.Tensor], tuple[list[torch.Tensor], Any]]]


@dataclass
class Signature:
    """arguments, names: patterns of positional, then of keyword arguments, and their names.
    leaves: of (args, kwargs), in the order of torch's pytrees. examples: the tensors among
    them; slots: their numbers by leaf. objects: among the arguments that are no pytrees, with what
    besides tensors they hold (argument_objects.py). read: the numbers of leaves that are tensors by
    whose values calls are told apart, with what flattens each. counters: attributes of objects that
    are sizes, each of which is a tensor of that size. numbers: leaves of plain numbers, each with
    the place that it is found at behind the tensors, the last of which stands for them. take: what
    makes that of them. lengths: of leaves that are read, of which one is to be a size, the slots of
    tensors of that size, which come behind all leaves."""

    arguments: tuple = ()
    names: tuple[str, ...] = ()
    leaves: list[Any] = field(default_factory=list)
    examples: list[torch.Tensor] = field(default_factory=list)
    slots: dict[int, int] = field(default_factory=dict)
    objects: list[tuple[Any, tuple]] = field(default_factory=list)
    read: Read = field(default_factory=dict)
    counters: frozenset[tuple[type, str]] = frozenset()
    numbers: dict[int, int] = field(default_factory=dict)
    take: Callable[..., Any] | None = None
    lengths: dict[int, int] = field(default_factory=dict)

    def core(self) -> _core.Specialization:
        """What matches such calls."""
        count = len(self.numbers)
        return _core.Specialization(self.arguments, self.names, self.examples, self.take, count)


def describe(
    args: tuple,
    kwargs: dict[str, Any],
    read: Read | None = None,
    counters: frozenset[tuple[type, str]] = frozenset(),
    numbers: Sequence[int] = (),
    given: torch.Tensor | None = None,
) -> Signature:
    """The pattern that calls like this one have in common, as `Signature` says.

    numbers: leaves that are numbers which the program takes, in the tensor `given` for this call.
    Raises: Declined, naming the argument that no pattern can describe.
    """
    signature = Signature(names=tuple(kwargs), read=read or {}, counters=counters)
    _describe_call(args, kwargs, signature)
    found = {leaf: flatten(signature.leaves[leaf])[0] for leaf, flatten in signature.read.items()}
    sizes = {leaf: parts[1] for leaf, parts in found.items() if len(parts) > 1}
    if sizes or given is not None:
        first = len(signature.examples)
        behind = first + len(sizes) + 1
        signature = Signature(
            names=signature.names,
            read=signature.read,
            counters=counters,
            numbers={leaf: behind + n for n, leaf in enumerate(numbers)},
            lengths={leaf: first + n for n, leaf in enumerate(sizes)},
        )
        _describe_call(args, kwargs, signature)
        signature.examples += sizes.values()
    if given is not None:
        signature.slots[len(signature.leaves)] = len(signature.examples)
        signature.examples.append(given)
    return signature


def _describe_call(args: tuple, kwargs: dict[str, Any], signature: Signature) -> None:
    positional = [_describe(v, f"argument {i}", signature) for i, v in enumerate(args)]
    named = [_describe(v, f"argument {k!r}", signature) for k, v in kwargs.items()]
    signature.arguments = tuple(positional + named)


def _describe(value: Any, name: str, signature: Signature) -> tuple:
    if isinstance(value, torch.Tensor):
        check_tensor(value, name)
        if attributes := own_attributes(value):
            raise Declined(f"{name} has attributes: {', '.join(attributes)}")
        slot, leaf = len(signature.examples), len(signature.leaves)
        signature.slots[leaf] = slot
        signature.leaves.append(value)
        signature.examples.append(value)
        if leaf in signature.read:
            flatten = signature.read[leaf]
            slots = [slot, *([signature.lengths[leaf]] if leaf in signature.lengths else ())]
            parts = tuple((TENSOR, each) for each in slots)
            return (NODE, type(value), flatten, flatten(value)[1], parts)
        return (TENSOR, slot)
    kind = type(value)
    if kind is tuple or kind is list:
        children = tuple(_describe(v, f"{name}[{i}]", signature) for i, v in enumerate(value))
        return (TUPLE if kind is tuple else LIST, children)
    if kind is dict:
        if not all(isinstance(key, PLAIN) for key in value):
            raise Declined(f"{name} is a dict with keys that are no plain values")
        children = tuple(_describe(v, f"{name}[{k!r}]", signature) for k, v in value.items())
        return (DICT, tuple(value), children)
    if isinstance(value, PLAIN) and kind in PLAIN or isinstance(value, enum.Enum):
        place = signature.numbers.get(len(signature.leaves))
        signature.leaves.append(value)
        return (VALUE, value) if place is None else (TENSOR, place)
    return _describe_node(value, name, signature)


def _describe_node(value: Any, name: str, signature: Signature) -> tuple:
    from weft.capture import argument_classes  # which needs this file

    flatten = _flatten_of(value)
    if flatten is None:
        return _describe_object(value, name, signature)
    if (own := argument_classes.code_of_users(type(value))) is not None:
        raise Declined(f"{name} is a {type(value).__qualname__}, whose {own} has no guard")
    if others := [*argument_classes.other_attributes(value)]:
        raise Declined(f"{name} has attributes: {', '.join(others)}")
    flatten = argument_classes.watched(flatten)
    children, context = flatten(value)
    described = tuple(_describe(v, f"{name}.{i}", signature) for i, v in enumerate(children))
    return (NODE, type(value), flatten, context, described)


def _describe_object(value: Any, name: str, signature: Signature) -> tuple:
    from weft.capture import argument_objects  # which needs this file

    kind = type(value)
    if not argument_objects.is_object(value):
        raise Declined(f"{name} is a {kind.__qualname__}, which is no pytree", type=kind)
    try:
        tensors, recipe = argument_objects.flatten(value, signature.counters)
    except argument_objects.NoRecipe as why:
        reason = f"{name} is a {kind.__qualname__}, which is no pytree and holds {why}"
        raise Declined(reason, type=kind) from None
    number = len(signature.objects)
    signature.objects.append((value, recipe))
    described = tuple(_describe(v, f"{name}[{i}]", signature) for i, v in enumerate(tensors))
    flatten = argument_objects.flatten
    if signature.counters:
        flatten = functools.partial(flatten, counters=signature.counters)
    return (NODE, kind, flatten, recipe, described, number)


def flatten_values(value: torch.Tensor) -> tuple[list[torch.Tensor], tuple[int, ...]]:
    """A tensor of few integers, and what they are."""
    return [value], tuple(value.tolist())


def flatten_dataclass(value: Any) -> tuple[list[Any], list[list[str]]]:
    """As torch.export flattens one once it is registered. Where torch's pytrees do not know a class
    they are not told of it: `torch.func` and others would treat its objects otherwise from then on.
    """
    entries = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    given = [name for name, entry in entries.items() if entry is not None]
    missing = [name for name, entry in entries.items() if entry is None]
    return [entries[name] for name in given], [given, missing]


def make_dataclass(kind: type, values: Any, context: list[list[str]]) -> Any:
    """What `flatten_dataclass` has flattened."""
    given, missing = context
    return kind(**dict(zip(given, values)), **dict.fromkeys(missing))


def tensors_of(args: tuple, kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors among the arguments of a call that `describe` has described, in its order."""
    found: list[torch.Tensor] = []
    for value in (*args, *kwargs.values()):
        _collect(value, found)
    return found


def _collect(value: Any, found: list[torch.Tensor]) -> None:
    if isinstance(value, torch.Tensor):
        found.append(value)
        return
    kind = type(value)
    if kind in PLAIN:
        return
    if kind is dict:
        children = value.values()
    elif kind is tuple or kind is list:
        children = value
    elif isinstance(value, enum.Enum):
        return
    else:
        children, _ = _flatten_of(value)(value)
    for child in children:
        _collect(child, found)


def _flatten_of(value: Any) -> Any:
    """What flattens a pytree or a dataclass, whose class a process that traces may know alone; None
    for any other object."""
    node = pytree.SUPPORTED_NODES.get(pytree._get_node_type(value))
    if node is not None:
        return node.flatten_fn
    is_instance = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return flatten_dataclass if is_instance else None


def own_attributes(tensor: torch.Tensor) -> list[str]:
    """Those of the user's making; torch.compile leaves notes of its own, and so do programs."""
    marks = ("_dynamo_", "_has_dynamo_", "_specialize_on", "weft_")
    return [name for name in vars(tensor) if not name.startswith(marks)]


# What fake tensors hold themselves, beside private notes.
_OF_FAKES = frozenset(("constant", "dispatch_keys", "fake_mode", "pytype", "real_tensor"))


def attributes_of_fake(tensor: torch.Tensor) -> list[str]:
    """Those that the program has given it."""
    return [name for name in own_attributes(tensor) if name[0] != "_" and name not in _OF_FAKES]


def check_tensor(tensor: torch.Tensor, name: str) -> None:
    """Raises: Declined, if no program can take such a tensor."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise Declined(
            f"{name} is a {type(tensor).__qualname__}, a subclass of torch.Tensor",
            type=type(tensor),
        )
    if tensor.layout != torch.strided:
        raise Declined(f"{name} has layout {tensor.layout}")
    if tensor.device.type != "cpu":
        raise Declined(f"{name} is on device {tensor.device}")
    if tensor.dtype not in NAMES and tensor.dtype not in REAL_OF:
        raise Declined(f"{name} has dtype {tensor.dtype}")
    if tensor.is_neg() or tensor.is_conj():
        raise Declined(f"{name} is a lazily negated or conjugated view")


def register_dataclasses(value: Any) -> None:
    """Makes dataclass instances inside `value` known to the pytrees of a process that traces."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if type(value) not in pytree.SUPPORTED_NODES:
            torch.export.register_dataclass(type(value))
        for entry in dataclasses.fields(value):
            register_dataclasses(getattr(value, entry.name))
    elif isinstance(value, (tuple, list)):
        for entry in value:
            register_dataclasses(entry)
    elif isinstance(value, dict):
        for entry in value.values():
            register_dataclasses(entry)
