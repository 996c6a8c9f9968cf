# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Resize and its forerunner Upsample, axis by axis.

Along an axis, linear and cubic interpolation are a matrix of weights and nearest neighbours a
choice of places; both follow from sizes alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from weft.onnx.table import Node, op
from weft.onnx.values import numbers, real_values


@dataclass(frozen=True)
class _Axis:
    """One axis that is resized. begin, end: of the region of interest, as shares."""

    number: int
    size: int
    wanted: int
    scale: float
    begin: float = 0.0
    end: float = 1.0

    def coordinate(self, place: int, mode: str, node: Node) -> float:
        """Where in the input the element `place` of the output lies."""
        scale, size, wanted = self.scale, self.size, self.wanted
        if mode == "half_pixel":
            return (place + 0.5) / scale - 0.5
        if mode == "half_pixel_symmetric":
            middle = size / 2 * (1 - wanted / (scale * size))
            return middle + (place + 0.5) / scale - 0.5
        if mode == "pytorch_half_pixel":
            return (place + 0.5) / scale - 0.5 if wanted > 1 else 0.0
        if mode == "tf_half_pixel_for_nn":
            return (place + 0.5) / scale
        if mode == "asymmetric":
            return place / scale
        if mode == "align_corners":
            exact = scale * size  # as the reference has it: not what is rounded down
            return place * (size - 1) / (exact - 1) if exact != 1 else 0.0
        if mode == "tf_crop_and_resize":
            span = (size - 1) * (self.end - self.begin)
            if wanted > 1:
                return self.begin * (size - 1) + place * span / (wanted - 1)
            return 0.5 * (self.begin + self.end) * (size - 1)
        raise node.unsupported(f"coordinates by {mode} are not known")


@op(
    "Resize",
    "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
    "extrapolation_value keep_aspect_ratio_policy mode nearest_mode",
    since=11,
)
def resize(
    node: Node,
    x: Tensor,
    roi: Tensor | None = None,
    scales: Tensor | None = None,
    sizes: Tensor | None = None,
) -> Tensor:
    axes = [axis % x.ndim for axis in node.get("axes", range(x.ndim))]
    wanted = numbers(sizes) if sizes is not None and sizes.numel() else None
    factors = numbers(scales) if wanted is None else None
    region = (
        numbers(roi) if roi is not None and roi.numel() else [0.0] * len(axes) + [1.0] * len(axes)
    )
    if wanted is not None:
        factors = [size / x.shape[axis] for size, axis in zip(wanted, axes, strict=True)]
        policy = node.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            factors = [(min if policy == "not_larger" else max)(factors)] * len(axes)
            wanted = [math.floor(x.shape[axis] * factors[0] + 0.5) for axis in axes]
    else:
        wanted = [
            math.floor(x.shape[axis] * each) for axis, each in zip(axes, factors, strict=True)
        ]
    resized = [
        _Axis(axis, x.shape[axis], size, factor, region[i], region[i + len(axes)])
        for i, (axis, size, factor) in enumerate(zip(axes, wanted, factors))
    ]
    return _resized(node, x, resized, node.get("coordinate_transformation_mode", "half_pixel"))


@op("Resize", "mode", since=10)
def resize_10(node: Node, x: Tensor, scales: Tensor) -> Tensor:
    return _scaled(node, x, numbers(scales))


@op("Upsample", "mode", since=9)
def upsample(node: Node, x: Tensor, scales: Tensor) -> Tensor:
    return _scaled(node, x, numbers(scales))


@op("Upsample", "mode scales", since=7)
def upsample_7(node: Node, x: Tensor) -> Tensor:
    return _scaled(node, x, node.get("scales"))


def _scaled(node: Node, x: Tensor, scales: list[float]) -> Tensor:
    axes = [
        _Axis(i, x.shape[i], math.floor(x.shape[i] * scale), scale)
        for i, scale in enumerate(scales)
    ]
    return _resized(node, x, axes, "asymmetric")


def _resized(node: Node, x: Tensor, axes: list[_Axis], coordinates: str) -> Tensor:
    mode = node.get("mode", "nearest")
    for axis in axes:
        stays = axis.wanted == axis.size and axis.scale == 1
        if stays and coordinates != "tf_crop_and_resize":
            continue
        at = [axis.coordinate(i, coordinates, node) for i in range(axis.wanted)]
        if mode == "nearest":
            x = _nearest(node, x, axis, at)
        else:
            x = _interpolated(node, x, axis, at, mode)
        if coordinates == "tf_crop_and_resize":
            x = _extrapolated(node, x, axis, at)
    return x


def _nearest(node: Node, x: Tensor, axis: _Axis, at: list[float]) -> Tensor:
    how = node.get("nearest_mode", "floor" if node.opset < 11 else "round_prefer_floor")
    rounding = {
        "ceil": math.ceil,
        "floor": math.floor,
        "round_prefer_ceil": lambda c: math.floor(c + 0.5),
        "round_prefer_floor": lambda c: math.ceil(c - 0.5),
    }
    if how not in rounding:
        raise node.unsupported(f"nearest_mode {how} is not known")
    places = [min(max(rounding[how](each), 0), axis.size - 1) for each in at]
    return x.index_select(axis.number, torch.tensor(places, dtype=torch.int64))


def _interpolated(node: Node, x: Tensor, axis: _Axis, at: list[float], mode: str) -> Tensor:
    rows = [_weights(node, axis, each, mode) for each in at]
    dtype = x.dtype if x.dtype.is_floating_point else torch.float32
    with real_values():
        weights = torch.tensor(rows, dtype=torch.float64).to(dtype)
    moved = x.to(dtype).movedim(axis.number, -1)
    found = torch.matmul(moved, weights.t()).movedim(-1, axis.number)
    if x.dtype.is_floating_point:
        return found
    bounds = torch.iinfo(x.dtype)
    return found.round().clamp(bounds.min, bounds.max).to(x.dtype)


def _weights(node: Node, axis: _Axis, at: float, mode: str) -> list[float]:
    """The weight of each element of the axis for one of the output."""
    if mode not in ("linear", "cubic"):
        raise node.unsupported(f"mode {mode} is not known")
    radius = 1 if mode == "linear" else 2
    stretch = min(axis.scale, 1.0) if node.get("antialias", 0) else 1.0
    reach = radius / stretch
    row = [0.0] * axis.size
    total = 0.0
    for place in range(math.floor(at - reach), math.ceil(at + reach) + 1):
        weight = _kernel(node, (place - at) * stretch, mode)
        outside = not 0 <= place < axis.size
        if weight == 0 or (outside and node.get("exclude_outside", 0)):
            continue
        row[min(max(place, 0), axis.size - 1)] += weight
        total += weight
    return [each / total for each in row]


def _kernel(node: Node, distance: float, mode: str) -> float:
    distance = abs(distance)
    if mode == "linear":
        return max(1 - distance, 0.0)
    a = node.get("cubic_coeff_a", -0.75)
    if distance <= 1:
        return ((a + 2) * distance - (a + 3)) * distance * distance + 1
    if distance < 2:
        return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return 0.0


def _extrapolated(node: Node, x: Tensor, axis: _Axis, at: list[float]) -> Tensor:
    beyond = [not 0 <= each <= axis.size - 1 for each in at]
    if not any(beyond):
        return x
    mask = torch.tensor(beyond).reshape(-1, *[1] * (x.ndim - 1 - axis.number))
    fill = torch.tensor(node.get("extrapolation_value", 0.0), dtype=x.dtype)
    return torch.where(mask, fill, x)


# --- sampling at given places ---


@op("GridSample", "align_corners mode padding_mode", since=16)
def grid_sample(node: Node, x: Tensor, grid: Tensor) -> Tensor:
    modes = {"bilinear": "bilinear", "linear": "bilinear", "nearest": "nearest"}
    modes |= {"bicubic": "bicubic", "cubic": "bicubic"}
    mode = modes.get(node.get("mode", "bilinear"))
    if mode is None:
        raise node.unsupported(f"mode {node.get('mode')} is not known")
    padding, align = node.get("padding_mode", "zeros"), bool(node.get("align_corners", 0))
    return torch.nn.functional.grid_sample(x, grid, mode, padding, align)


@op("AffineGrid", "align_corners", since=20)
def affine_grid(node: Node, theta: Tensor, sizes: Tensor) -> Tensor:
    align = bool(node.get("align_corners", 0))
    return torch.nn.functional.affine_grid(theta, numbers(sizes), align)
