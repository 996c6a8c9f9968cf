# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that move elements or look at shapes."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from weft import errors
from weft.onnx.table import Node, op
from weft.onnx.values import dtype_of, has_values, number, numbers


@op("Shape", "start end")
def shape(node: Node, x: Tensor) -> Tensor:
    sizes = list(x.shape)[node.get("start", 0) : node.get("end")]
    return torch.tensor(sizes, dtype=torch.int64)


@op("Size")
def size(node: Node, x: Tensor) -> Tensor:
    return torch.tensor(math.prod(x.shape), dtype=torch.int64)


@op("Reshape", "allowzero", since=5)
def reshape(node: Node, x: Tensor, to: Tensor) -> Tensor:
    sizes = numbers(to)
    if not node.get("allowzero", 0):
        sizes = [x.shape[i] if each == 0 else each for i, each in enumerate(sizes)]
    return x.reshape(sizes)


@op("Reshape", "shape consumed_inputs")
def reshape_1(node: Node, x: Tensor) -> Tensor:
    return reshape(node, x, torch.tensor(node.get("shape"), dtype=torch.int64))


@op("Flatten", "axis")
def flatten(node: Node, x: Tensor) -> Tensor:
    axis = node.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@op("Squeeze", "axes")
def squeeze(node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """axes: an attribute in older operator sets."""
    chosen = node.get("axes") if axes is None else numbers(axes)
    if chosen is None:
        return x.squeeze()
    for axis in chosen:
        if x.shape[axis] != 1:
            raise errors.ModelError(f"{node}: expected axis {axis} of size 1, in {[*x.shape]}")
    return x.squeeze(tuple(chosen))


@op("Unsqueeze", "axes")
def unsqueeze(node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """axes: an attribute in older operator sets."""
    chosen = node.get("axes") if axes is None else numbers(axes)
    ndim = x.ndim + len(chosen)
    for axis in sorted(axis % ndim for axis in chosen):
        x = x.unsqueeze(axis)
    return x


@op("Transpose", "perm")
def transpose(node: Node, x: Tensor) -> Tensor:
    return x.permute(node.get("perm", list(range(x.ndim))[::-1]))


@op("Concat", "axis")
def concat(node: Node, *parts: Tensor) -> Tensor:
    return torch.cat(parts, node.get("axis", 1))


@op("Split", "axis split num_outputs")
def split(node: Node, x: Tensor, sizes: Tensor | None = None) -> tuple[Tensor, ...]:
    """sizes: an attribute in older operator sets."""
    axis = node.get("axis", 0)
    chosen = node.get("split") if sizes is None else numbers(sizes)
    if chosen is None:
        count = node.get("num_outputs", len(node.outputs))
        each = -(-x.shape[axis] // count)
        chosen = [each] * (count - 1)
        chosen.append(x.shape[axis] - sum(chosen))
    return tuple(torch.split(x, chosen, axis))


@op("Slice", since=10)
def slice_(
    node: Node,
    x: Tensor,
    starts: Tensor,
    ends: Tensor,
    axes: Tensor | None = None,
    steps: Tensor | None = None,
) -> Tensor:
    first, last = numbers(starts), numbers(ends)
    chosen = list(range(len(first))) if axes is None else numbers(axes)
    strides = [1] * len(first) if steps is None else numbers(steps)
    return _sliced(x, first, last, chosen, strides)


@op("Slice", "starts ends axes")
def slice_1(node: Node, x: Tensor) -> Tensor:
    starts = node.get("starts")
    axes = node.get("axes", list(range(len(starts))))
    return _sliced(x, starts, node.get("ends"), axes, [1] * len(starts))


def _sliced(
    x: Tensor, starts: list[int], ends: list[int], axes: list[int], steps: list[int]
) -> Tensor:
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        places = range(*slice(start, end, step).indices(x.shape[axis]))
        if len(places) == 0:
            x = x.narrow(axis, 0, 0)
        elif step > 0:
            x = _stepping(x, axis, places.start, len(places), step)
        else:  # torch has no negative steps
            x = _stepping(x, axis, places[-1], len(places), -step).flip(axis)
    return x


def _stepping(x: Tensor, axis: int, start: int, count: int, step: int) -> Tensor:
    index = [slice(None)] * x.ndim
    index[axis] = slice(start, start + (count - 1) * step + 1, step)
    return x[tuple(index)]


@op("Expand", since=8)
def expand(node: Node, x: Tensor, to: Tensor) -> Tensor:
    return x.expand(torch.broadcast_shapes(x.shape, tuple(numbers(to))))


@op("Tile", since=6)
def tile(node: Node, x: Tensor, repeats: Tensor) -> Tensor:
    return x.repeat(numbers(repeats))


@op("Tile")
def tile_1(node: Node, x: Tensor, tiles: Tensor, axis: Tensor) -> Tensor:
    repeats = [1] * x.ndim
    repeats[number(axis)] = number(tiles)
    return x.repeat(repeats)


@op("Pad", "mode", since=11)
def pad(
    node: Node,
    x: Tensor,
    pads: Tensor,
    value: Tensor | None = None,
    axes: Tensor | None = None,
) -> Tensor:
    amounts = numbers(pads)
    chosen = list(range(x.ndim)) if axes is None else numbers(axes)
    before, after = [0] * x.ndim, [0] * x.ndim
    for i, axis in enumerate(chosen):
        before[axis], after[axis] = amounts[i], amounts[i + len(chosen)]
    mode = node.get("mode", "constant")
    if value is None or mode != "constant" or has_values(value):
        fill = 0 if value is None or mode != "constant" else number(value)
        return _padded(node, x, before, after, mode, fill)
    border = _padded(node, torch.zeros_like(x, dtype=torch.bool), before, after, mode, 1)
    return torch.where(border, value, _padded(node, x, before, after, mode, 0))


@op("Pad", "mode pads value paddings")
def pad_1(node: Node, x: Tensor) -> Tensor:
    pads = node.get("pads", node.get("paddings"))
    mode, fill = node.get("mode", "constant"), node.get("value", 0.0)
    return _padded(node, x, pads[: x.ndim], pads[x.ndim :], mode, fill)


def _padded(
    node: Node, x: Tensor, before: list[int], after: list[int], mode: str, fill: float
) -> Tensor:
    if mode == "constant":
        pairs = [each for pair in zip(before[::-1], after[::-1]) for each in pair]
        return F.pad(x, pairs, value=fill)
    if mode not in ("edge", "reflect", "wrap"):
        raise node.unsupported(f"mode {mode} is not known")
    for axis in range(x.ndim):
        count = x.shape[axis]
        if before[axis] == after[axis] == 0:
            continue
        places = [_source(i, count, mode) for i in range(-before[axis], count + after[axis])]
        x = x.index_select(axis, torch.tensor(places, dtype=torch.int64))
    return x


def _source(place: int, count: int, mode: str) -> int:
    """The element that stands at a place beyond the border."""
    if mode == "edge":
        return min(max(place, 0), count - 1)
    if mode == "wrap" or count == 1:
        return place % count
    place %= 2 * (count - 1)
    return min(place, 2 * (count - 1) - place)


@op("CenterCropPad", "axes", since=18)
def center_crop_pad(node: Node, x: Tensor, to: Tensor) -> Tensor:
    sizes = numbers(to)
    axes = node.get("axes", list(range(x.ndim)))
    for axis, wanted in zip(axes, sizes, strict=True):
        found = x.shape[axis]
        if found > wanted:
            x = x.narrow(axis, (found - wanted) // 2, wanted)
        elif found < wanted:
            amounts = [0] * (2 * x.ndim)
            place = 2 * (x.ndim - 1 - axis % x.ndim)
            amounts[place] = (wanted - found) // 2
            amounts[place + 1] = wanted - found - amounts[place]
            x = F.pad(x, amounts)
    return x


@op("DepthToSpace", "blocksize mode")
def depth_to_space(node: Node, x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    b = node.get("blocksize")
    if node.get("mode", "DCR") == "DCR":
        split = x.reshape(n, b, b, c // (b * b), h, w).permute(0, 3, 4, 1, 5, 2)
    else:
        split = x.reshape(n, c // (b * b), b, b, h, w).permute(0, 1, 4, 2, 5, 3)
    return split.reshape(n, c // (b * b), h * b, w * b)


@op("SpaceToDepth", "blocksize")
def space_to_depth(node: Node, x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    b = node.get("blocksize")
    split = x.reshape(n, c, h // b, b, w // b, b).permute(0, 3, 5, 1, 2, 4)
    return split.reshape(n, c * b * b, h // b, w // b)


@op("ConstantOfShape", "value", since=9)
def constant_of_shape(node: Node, sizes: Tensor) -> Tensor:
    value = node.get("value")
    if value is None:
        return torch.zeros(numbers(sizes), dtype=torch.float32)
    return torch.full(numbers(sizes), number(value), dtype=value.dtype)


@op("EyeLike", "dtype k", since=9)
def eye_like(node: Node, x: Tensor) -> Tensor:
    dtype = dtype_of(node.get("dtype")) if "dtype" in node.attributes else x.dtype
    rows, columns = (torch.arange(size) for size in x.shape)
    return (columns == rows.unsqueeze(1) + node.get("k", 0)).to(dtype)


@op("Range", since=11)
def range_(node: Node, start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    first, end, step = number(start), number(limit), number(delta)
    count = max(math.ceil((end - first) / step), 0)
    return torch.arange(count, dtype=start.dtype) * step + first


@op("Trilu", "upper", since=14)
def trilu(node: Node, x: Tensor, k: Tensor | None = None) -> Tensor:
    diagonal = 0 if k is None else number(k)
    return torch.triu(x, diagonal) if node.get("upper", 1) else torch.tril(x, diagonal)


@op("ReverseSequence", "batch_axis time_axis", since=10)
def reverse_sequence(node: Node, x: Tensor, lengths: Tensor) -> Tensor:
    time, batch = node.get("time_axis", 0), node.get("batch_axis", 1)
    sizes = [1] * x.ndim
    sizes[time] = x.shape[time]
    places = torch.arange(x.shape[time]).reshape(sizes)
    sizes = [1] * x.ndim
    sizes[batch] = x.shape[batch]
    lengths = lengths.reshape(sizes)
    places = torch.where(places < lengths, lengths - 1 - places, places)
    return torch.take_along_dim(x, places, time)
