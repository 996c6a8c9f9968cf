# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which sizes of a call are to be symbols, and their ranges."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.utils._pytree as pytree

from weft import errors
from weft.compiled.batch_invariance import MOST_ROWS, batch_of

if TYPE_CHECKING:
    from weft.compiled.flat_calls import FlatCall

# The smallest program for a range without a given end is for sizes up to this.
_FIRST_END = 16
_FIRST_PROMPT_END = 64
_FIRST_CACHE_END = 256
_NO_END = 1 << 20

Wanted = dict[int, dict[int, tuple[int, int]]]


@dataclass(frozen=True)
class Range:
    """The sizes from low to high, both included, of one dimension of an argument.

    beyond: for calls with another size: "compile" gives that size a program of its own, "error"
    raises errors.SizeError.
    Raises: errors.ConfigError, if the range is empty.
    """

    low: int
    high: int
    beyond: Literal["compile", "error"] = "compile"

    def __post_init__(self) -> None:
        if not (_is_size(self.low) and _is_size(self.high) and self.low <= self.high):
            raise errors.ConfigError(f"expected 0 <= low <= high, found {self.low}, {self.high}")
        if self.beyond not in ("compile", "error"):
            raise errors.ConfigError(
                f"expected beyond='compile' or beyond='error', found {self.beyond!r}"
            )

    def __contains__(self, size: int) -> bool:
        return self.low <= size <= self.high

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


class Sizes:
    """The sizes given by `weft.compile(shapes=…)`. shapes: by the parameters' names."""

    def __init__(
        self,
        shapes: Mapping[str, Any] | None,
        target: Callable[..., Any],
        batch_invariant: bool = False,
    ) -> None:
        """Raises: errors.ConfigError for an invalid description of shapes."""
        self._shapes = {name: _checked(each, name) for name, each in (shapes or {}).items()}
        self._names: list[str] | None = None
        self._batch_invariant = batch_invariant
        if self._shapes:
            self._names = _parameters(target)
            unknown = [n for n in self._shapes if self._names and n not in self._names]
            if unknown and not _takes_any(target):
                raise errors.ConfigError(f"expected names of parameters, found {unknown[0]!r}")

    def wanted(self, args: tuple, kwargs: dict[str, Any]) -> Wanted:
        """The sizes that are to be symbols, by shapes= and by `torch._dynamo.mark_dynamic`. Leaves
        are those of (args, kwargs).

        Raises: errors.SizeError, for a size that was declared an error.
        """
        found: Wanted = {}
        for number, (name, path, leaf) in enumerate(self._leaves(args, kwargs)):
            if not isinstance(leaf, torch.Tensor):
                continue
            dims = {**_marked(leaf)}
            for dim, size_range in _along(self._shapes.get(name), path, leaf):
                size = leaf.shape[dim]
                if size in size_range:
                    dims[dim] = (size_range.low, size_range.high)
                elif size_range.beyond == "error":
                    where = f"{name}{''.join(map(str, path))}"
                    raise errors.SizeError(
                        f"argument {where!r}: expected a size of {size_range} in dim {dim}, "
                        f"found {size}"
                    )
                else:
                    dims.pop(dim, None)
            if dims:
                found[number] = {
                    dim: _program_range(*r, leaf.shape[dim], _is_outermost(leaf, dim))
                    for dim, r in dims.items()
                }
        if self._batch_invariant:
            batch, rows = batch_of(args, kwargs)
            for number in rows if 2 <= batch <= MOST_ROWS else ():
                found.setdefault(number, {})[0] = (2, MOST_ROWS)
        return found

    def _leaves(
        self, args: tuple, kwargs: dict[str, Any]
    ) -> Iterator[tuple[str, pytree.KeyPath, Any]]:
        names = self._names or []
        for place, value in enumerate(args):
            name = names[place] if place < len(names) else str(place)
            for path, leaf in pytree.tree_flatten_with_path(value)[0]:
                yield name, path, leaf
        for name, value in kwargs.items():
            for path, leaf in pytree.tree_flatten_with_path(value)[0]:
                yield name, path, leaf


def program_range(size: int) -> tuple[int, int]:
    """The range of a program for a size without a given range: a factor of two."""
    return _program_range(0, _NO_END, size)


def fitting(told: Wanted, call: FlatCall) -> Wanted:
    """Leaves out the sizes that are not in their ranges, and 0 and 1, which torch treats specially.
    Bounds below 2 are those of a cache (`cache_range`)."""
    wanted: Wanted = {}
    held = call.held()
    for number, dims in told.items():
        sizes = call.leaves[number].shape
        within = {
            dim: (low if number in held else max(low, 2), high)
            for dim, (low, high) in dims.items()
            if max(2, low) <= sizes[dim] <= high
        }
        if within:
            wanted[number] = within
    return wanted


def cache_range(size: int) -> tuple[int, int]:
    """The range of a program for a tensor that calls make longer. It is a factor of four, to need
    few programs: reading such a tensor takes little time compared with the weights. A size of 1
    belongs to the second step of each sequence."""
    low, high = _within_a_factor_of_four(size, _FIRST_CACHE_END)
    return max(low, 1), high


def prompt_range(size: int) -> tuple[int, int]:
    """The range of a program for other sizes of calls that take a cache: a prompt is read once, and
    then a step is made for each token."""
    low, high = _within_a_factor_of_four(size, _FIRST_PROMPT_END)
    return max(low, 2), high


def _within_a_factor_of_four(size: int, first_end: int) -> tuple[int, int]:
    end = first_end
    while end < size:
        end *= 4
    return 0 if end == first_end else end // 4 + 1, end


def _program_range(low: int, high: int, size: int, is_outermost: bool = False) -> tuple[int, int]:
    """The whole range for the outermost dimension in memory, where kernels leave out padding;
    otherwise a factor of two."""
    if is_outermost and high < _NO_END:
        return low, high
    end = _FIRST_END
    while end < size:
        end *= 2
    return max(low, 2 if end == _FIRST_END else end // 2 + 1), min(end, high)


def _is_outermost(tensor: torch.Tensor, dim: int) -> bool:
    return all(size == 1 for size in tensor.shape[:dim])


def _marked(tensor: torch.Tensor) -> dict[int, tuple[int, int]]:
    """torch's marks: the dimensions, with bounds for some."""
    dims = {
        *getattr(tensor, "_dynamo_dynamic_indices", ()),
        *getattr(tensor, "_dynamo_weak_dynamic_indices", ()),
    }
    found = dict.fromkeys(sorted(dims), (0, _NO_END))
    for each in getattr(tensor, "_dynamo_dynamic_range", ()):
        low = 0 if each.min is None else int(each.min)
        high = _NO_END if each.max is None or each.max > _NO_END else int(each.max)
        found[each.dim] = (low, high)
    return found


def _checked(given: Any, name: str) -> Any:
    """The description of an argument's shape, with Ranges for sizes that may vary."""
    if given is None:
        return None
    if isinstance(given, Mapping) and all(isinstance(key, int) for key in given):
        return {dim: _range(each, name) for dim, each in given.items() if _is_symbolic(each)}
    if isinstance(given, Mapping):
        return {key: _checked(each, f"{name}[{key!r}]") for key, each in given.items()}
    if isinstance(given, (tuple, list)):
        if any(isinstance(each, (Mapping, tuple, list)) for each in given):
            return [_checked(each, f"{name}[{i}]") for i, each in enumerate(given)]
        return {dim: _range(each, name) for dim, each in enumerate(given) if _is_symbolic(each)}
    raise errors.ConfigError(f"shapes[{name!r}]: expected ranges by dim, found {given!r}")


def _is_symbolic(given: Any) -> bool:
    """Whether a size may vary; torch writes None and STATIC for one that may not."""
    is_static = getattr(given, "type", None) is not None and "STATIC" in str(given.type)
    return given is not None and not _is_size(given) and not is_static


def _range(given: Any, name: str) -> Range:
    """A Range from a Range, a pair, or torch.export's Dim and hints."""
    if isinstance(given, Range):
        return given
    if isinstance(given, (tuple, list)) and len(given) == 2 and all(map(_is_size, given)):
        return Range(*given)
    is_hint = type(given).__module__.startswith("torch.export")
    if not is_hint:
        raise errors.ConfigError(
            f"shapes[{name!r}]: expected a weft.Range or torch.export.Dim, found {given!r}"
        )
    low, high = getattr(given, "min", None), getattr(given, "max", None)
    if not _is_size(low):
        low = 0
    if not _is_size(high) or high > _NO_END:
        high = _NO_END
    return Range(low, high)


def _along(spec: Any, path: Any, leaf: torch.Tensor) -> Iterator[tuple[int, Range]]:
    for key in path:
        step = getattr(key, "idx", getattr(key, "key", None))
        if isinstance(spec, list) and isinstance(step, int) and step < len(spec):
            spec = spec[step]
        elif isinstance(spec, dict) and step in spec:
            spec = spec[step]
        else:
            return
    if isinstance(spec, dict):
        for dim, each in spec.items():
            if isinstance(dim, int) and isinstance(each, Range) and -leaf.dim() <= dim < leaf.dim():
                yield dim % leaf.dim(), each


def _parameters(target: Callable[..., Any]) -> list[str]:
    function = target.forward if isinstance(target, torch.nn.Module) else target
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # it has no signature
        return []
    return [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _takes_any(target: Callable[..., Any]) -> bool:
    function = target.forward if isinstance(target, torch.nn.Module) else target
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.kind is p.VAR_KEYWORD for p in parameters)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
