# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the frontend hands to the face: a graph in JSON, and how to feed and read it.

The graph knows tensors by position only. `Lowered.inputs` says where each graph input comes
from at a call; `Lowered.outputs` says what to do with each result, and which outputs are no
results at all but Python constants or views that torch itself rebuilds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)

from weft import errors


@dataclass(frozen=True)
class Location:
    """A line of the user's Python source."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ({self.function})"


class Unsupported(errors.CaptureError):
    """The program cannot become a graph."""


class Refused(Unsupported):
    """PyTorch itself refuses a call of the program, so it has to tell the user why."""


class Decline(Exception):
    """A rule of the table does not cover these arguments; the message says why."""


def asks_for_values(error: Exception) -> str | None:
    """What an error of tracing says in words of the program, if an op gives Python a value, or has
    a result of a size, that only the elements of its tensors tell."""
    if isinstance(error, DataDependentOutputException):
        return f"{error.func} asks for the values of a tensor, of which a trace has none"
    if isinstance(error, DynamicOutputShapeException):
        return f"{error.func} gives a size that depends on the values of a tensor"
    return None


def first_line(error: Exception) -> str:
    """Of what the error says."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")


@dataclass(frozen=True)
class InputSource:
    """Where one graph input comes from.

    kind "user": flattened call argument number `index` (args, then kwargs, as torch.export
    orders them; leaves that are no tensors count too).
    kind "parameter" or "buffer": the module's tensor named `name`, read live at each call.
    kind "constant": `tensor`, captured by export; `name` is export's name for it.
    `dense`: the strides seen at export are those the graph input has (a dense permutation);
    if false the face passes a row-major copy.
    """

    kind: Literal["user", "parameter", "buffer", "constant"]
    index: int | None = None
    name: str | None = None
    tensor: torch.Tensor | None = None
    dense: bool = True


# Of linear functions of the symbols of a range of sizes, (coefficients, constant) of each.
Product = tuple[tuple[tuple[int, ...], int], ...]


@dataclass(frozen=True)
class SizedLayout:
    """The layout of a view, where it depends on sizes; `ViewOf` has that for one size."""

    sizes: tuple[Product, ...]
    strides: tuple[Product, ...]
    offset: Product


@dataclass(frozen=True)
class ViewOf:
    """An output that is an input, or shares the storage of an input or an earlier output.

    base: the input, or the position in `Lowered.outputs` of an earlier output.
    identity: the output is the base object itself.
    offset: in elements of `dtype`, from the base's own storage offset: the view is
    `base.as_strided(sizes, strides, base.storage_offset() + offset)`, where the dtype differs of
    the base's memory as `dtype`. All mutations are committed before. sized: the same where sizes
    are symbols. conjugates: it is lazily conjugated, unlike the base.
    """

    base: InputSource | int
    identity: bool
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    sized: SizedLayout | None = None
    conjugates: bool = False


@dataclass(frozen=True)
class ChosenRows:
    """The first rows of a result, as many as the graph output `count` says, are the user's.

    dim: whose elements are called rows. by_column: the user's tensor (rows, columns) lies column by
    column. column: the user gets this one of them alone.
    """

    count: int
    dim: int
    by_column: bool = False
    column: int | None = None


@dataclass(frozen=True)
class Valid:
    """What counts of a padded result.

    dims: of each the factors that it is the product of, (size, coefficients, constant): the first
    `coefficients` * symbols + `constant` elements count, all where the coefficients are None.
    order: of the dims in memory. strides: of the user's tensor, None where they follow from the
    order. offset: at which it begins in its memory.
    """

    dims: tuple[tuple[tuple[int, tuple[int, ...] | None, int], ...], ...]
    order: tuple[int, ...]
    strides: tuple[Product, ...] | None
    offset: Product


@dataclass(frozen=True)
class OutputTarget:
    """What one effect or one leaf of the returned pytree is.

    kind "user": output leaf `index`; kind "buffer": `result` is copied into buffer `name`;
    kind "input": `result` is copied into flattened call argument `index`; kind "constant":
    output leaf `index` is the Python object `value`; kind "hidden": no leaf, but what leaves are
    views of.
    `result`: position among the graph's outputs, None for constants and views. Two targets
    with the same `result` and kind "user" are the same object. is_complex: the result's last dim
    holds the parts of complex numbers. is_conj: of what the leaf conjugates lazily. chosen: which
    of the result's rows are the user's. valid: what of the result is the user's, where sizes are
    symbols. is_original: the leaf is an argument, or a view of one, of which the program has a
    padded copy. steps: by how much the write increments the target's version counter. is_read:
    other results may be computed of it.
    """

    kind: Literal["user", "buffer", "input", "constant", "hidden"]
    index: int | None = None
    name: str | None = None
    value: Any = None
    result: int | None = None
    view: ViewOf | None = None
    is_complex: bool = False
    is_conj: bool = False
    chosen: ChosenRows | None = None
    valid: Valid | None = None
    is_original: bool = False
    steps: int = 1
    is_read: bool = True


@dataclass(frozen=True)
class Fallback:
    """An op that PyTorch runs inside the program. arguments: the template of fallback.py."""

    target: str
    arguments: str
    reason: str
    location: Location | None


@dataclass(frozen=True)
class AutogradReach:
    """What eager execution gives gradients, if only zeros. place: what stands for the tensor of a
    source. reached: the places to which autograd leads from each leaf of the value returned."""

    place: Callable[[InputSource], Hashable]
    reached: Sequence[Set[Hashable]]


@dataclass(frozen=True)
class Lowered:
    """A program ready for the compiler. `graph` is deterministic: equal programs, equal bytes.
    result_dtypes: of the graph's outputs. reached: by leaf of the value returned, the inputs that
    autograd leads to from there in eager execution, where the graph is to be differentiated.
    copied: inputs of which the derivative there has copies."""

    graph: bytes
    inputs: tuple[InputSource, ...]
    outputs: tuple[OutputTarget, ...]
    fallbacks: tuple[Fallback, ...]
    result_dtypes: tuple[torch.dtype, ...] = ()
    reached: dict[int, tuple[int, ...]] = field(default_factory=dict)
    copied: tuple[int, ...] = ()
