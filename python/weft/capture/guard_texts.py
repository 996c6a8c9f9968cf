# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What traced programs assume, in the user's terms.

The keys of states and calls are nested tuples. Where a part of one has a name in the user's program
it is an `Entry`, so that the texts, and the first difference between two keys, can be read off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from weft.capture.signature import PLAIN, Same

# How labels begin whose parts are told as one: attributes of torch's classes, and its functions.
OF_TORCH = "torch's "
_LONGEST = 60  # of a text or a number


class Entry(NamedTuple):
    """label: an expression, or what is appended to that of the whole: `.p`, `[2]`."""

    label: str
    key: Any


@dataclass(frozen=True)
class Sizes:
    """Any from the least to the largest."""

    least: int
    most: int

    def __repr__(self) -> str:
        return f"{self.least}…{self.most}"


def metadata(tensor: torch.Tensor) -> tuple[Entry, ...]:
    """What code can tell of a dense tensor without its elements."""
    return (
        Entry(".dtype", tensor.dtype),
        Entry(".device", tensor.device),
        Entry(".shape", tuple(tensor.shape)),
        Entry(".stride()", tensor.stride()),
        Entry(".requires_grad", tensor.requires_grad),
    )


def texts(key: Any, path: str = "") -> Iterator[str]:
    """Each assumption of a key, such as `self.layers[2].p == 0.1`."""
    if isinstance(key, Entry):
        path = _joined(path, key.label)
        if key.label.startswith(OF_TORCH):
            yield f"{key.label} as they were"
        elif _is_shown(key.key):
            yield f"{path} == {_shown(key.key)}"
        else:
            yield from texts(key.key, path)
    elif _is_plain(key):
        yield f"{path} == {_shown(key)}"
    elif isinstance(key, tuple):
        if len(key) == 2 and key[0] in (list, tuple) and isinstance(key[1], tuple):
            yield f"len({path}) == {len(key[1])}"
        for each in key:
            yield from texts(each, path)
    elif isinstance(key, Same) and path not in ("", _shown(key)):
        yield f"{path} is {_shown(key)}"


def difference(expected: Any, found: Any, path: str = "") -> str | None:
    """The first assumption of the key `expected` that `found` does not meet; None if the two are
    equal."""
    if expected == found:
        return None
    if isinstance(expected, Entry) and isinstance(found, Entry):
        if expected.label == found.label:
            inner = _joined(path, expected.label)
            if _is_shown(expected.key) and _is_shown(found.key):
                return f"{inner} == {_shown(expected.key)}, found {_shown(found.key)}"
            return difference(expected.key, found.key, inner) or f"{inner} has changed"
    elif _is_plain(expected) or _is_plain(found) or not _are_tuples(expected, found):
        return f"{path or 'what it reads'} {_relation(expected)}, found {_shown(found)}"
    elif _are_identities(expected[:1], found[:1]) and expected[0] != found[0]:  # of classes
        return difference(expected[0], found[0], path)
    else:
        named, others = _entries(expected), _entries(found)
        for label, entry in named.items():
            if label not in others:
                return f"{_joined(path, label)} is there no more"
            if (text := difference(entry, others[label], path)) is not None:
                return text
        for label in others:
            if label not in named:
                return f"{_joined(path, label)} was not there"
        if len(expected) == len(found):
            for one, other in zip(expected, found):
                if (text := difference(one, other, path)) is not None:
                    return text
    return f"{path or 'what it reads'} has changed"


def _entries(key: tuple) -> dict[str, Entry]:
    return {each.label: each for each in key if isinstance(each, Entry)}


def _joined(path: str, label: str) -> str:
    return path + label if label.startswith((".", "[")) else label


def _are_tuples(*keys: Any) -> bool:
    return all(isinstance(key, tuple) for key in keys)


def _are_identities(*keys: tuple) -> bool:
    return all(key and isinstance(key[0], Same) for key in keys)


def _is_plain(key: Any) -> bool:
    return type(key) is tuple and len(key) == 2 and type(key[0]) is type and key[0] in PLAIN


def _is_shown(key: Any) -> bool:
    """Whether it is of a tensor's metadata."""
    return type(key) in PLAIN or (type(key) is tuple and all(_is_size(each) for each in key))


def _is_size(value: Any) -> bool:
    return type(value) is int or isinstance(value, Sizes)


def _relation(key: Any) -> str:
    return f"{'is' if isinstance(key, Same) else '=='} {_shown(key)}"


def _shown(key: Any) -> str:
    """The object's text, made without a `__repr__` of the user's."""
    if _is_plain(key):
        kind, value = key
        return _shortened(repr(float.fromhex(value) if kind is float else value))
    value = key.value if isinstance(key, Same) else key
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if isinstance(name, str):
        return name
    if isinstance(key, Same):
        return f"the same {type(value).__qualname__}"
    return _shortened(repr(value)) if _is_shown(value) else "another one"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
