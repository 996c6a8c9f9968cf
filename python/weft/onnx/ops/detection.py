# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Boxes: their suppression, and pools over regions."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.onnx.table import Node, op
from weft.onnx.values import number


@op("NonMaxSuppression", "center_point_box", since=10)
def non_max_suppression(
    node: Node,
    boxes: Tensor,
    scores: Tensor,
    most: Tensor | None = None,
    overlap: Tensor | None = None,
    least: Tensor | None = None,
) -> Tensor:
    """(chosen, 3) of batch, class and box: how many depends on data, so PyTorch runs it."""
    count = 0 if most is None else int(number(most))
    bound = 0.0 if overlap is None else number(overlap)
    chosen: list[list[int]] = []
    for batch in range(boxes.shape[0]):
        corners = _corners(boxes[batch].to(torch.float64), node.get("center_point_box", 0))
        for kind in range(scores.shape[1]):
            of_kind = scores[batch, kind].tolist()
            order = sorted(range(len(of_kind)), key=lambda i, s=of_kind: -s[i])
            if least is not None:
                order = [i for i in order if of_kind[i] > number(least)]
            kept = _kept(corners.tolist(), order, count, bound)
            chosen += [[batch, kind, box] for box in kept]
    return torch.tensor(chosen, dtype=torch.int64).reshape(-1, 3)


def _corners(boxes: Tensor, centred: int) -> Tensor:
    if centred:
        x, y, width, height = boxes.unbind(-1)
        return torch.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], -1)
    first, second = boxes[:, :2], boxes[:, 2:]
    return torch.cat([torch.minimum(first, second), torch.maximum(first, second)], -1)


def _kept(corners: list[list[float]], order: list[int], most: int, bound: float) -> list[int]:
    kept: list[int] = []
    for box in order:
        if len(kept) >= most:
            break
        if all(_overlap(corners[box], corners[other]) <= bound for other in kept):
            kept.append(box)
    return kept


def _overlap(a: list[float], b: list[float]) -> float:
    """Intersection over union."""
    height = min(a[2], b[2]) - max(a[0], b[0])
    width = min(a[3], b[3]) - max(a[1], b[1])
    if height <= 0 or width <= 0:
        return 0.0
    both = height * width
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


@op(
    "RoiAlign",
    "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale",
    since=10,
)
def roi_align(node: Node, x: Tensor, rois: Tensor, batches: Tensor) -> Tensor:
    """(rois, c, output_height, output_width): a mean or maximum of samples in each cell."""
    ratio = node.get("sampling_ratio", 0)
    if ratio <= 0:
        raise node.unsupported("a number of samples that depends on data is not supported")
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    half = node.get("coordinate_transformation_mode", default) == "half_pixel"
    scaled = rois * node.get("spatial_scale", 1.0) - (0.5 if half else 0.0)
    cells = node.get("output_height", 1), node.get("output_width", 1)
    x1, y1, x2, y2 = scaled.unbind(-1)
    ys = _samples(y1, y2, cells[0], ratio, half)
    xs = _samples(x1, x2, cells[1], ratio, half)
    largest = node.get("mode", "avg") == "max"
    return _pooled(x.index_select(0, batches.to(torch.int64)), ys, xs, cells, ratio, largest)


def _samples(first: Tensor, last: Tensor, cells: int, ratio: int, half: bool) -> Tensor:
    """(rois, cells · ratio) coordinates."""
    span = last - first
    if not half:
        span = span.clamp(min=1.0)
    places = (torch.arange(cells * ratio, dtype=first.dtype) + 0.5) / ratio
    return first.unsqueeze(1) + places * (span / cells).unsqueeze(1)


def _corner_weights(at: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
    """Two places with their weights; none for what lies more than one element outside."""
    inside = ((at >= -1) & (at <= size)).to(at.dtype)
    at = at.clamp(min=0)
    low = at.floor().clamp(max=size - 1)
    share = torch.where(low >= size - 1, torch.zeros_like(at), at - low)
    high = (low + 1).clamp(max=size - 1)
    return [(low.long(), (1 - share) * inside), (high.long(), share * inside)]


def _pooled(
    x: Tensor, ys: Tensor, xs: Tensor, cells: tuple[int, int], ratio: int, largest: bool
) -> Tensor:
    rois, channels, height, width = x.shape
    terms = []
    for row, down in _corner_weights(ys, height):
        for column, across in _corner_weights(xs, width):
            place = (row.unsqueeze(2) * width + column.unsqueeze(1)).reshape(rois, 1, -1)
            found = x.reshape(rois, channels, -1).gather(2, place.expand(-1, channels, -1))
            weight = (down.unsqueeze(2) * across.unsqueeze(1)).reshape(rois, 1, -1)
            terms.append(found * weight)
    grid = rois, channels, cells[0], ratio, cells[1], ratio
    if largest:  # of the weighted corners, not of their sums
        found = torch.stack(terms).amax(0).reshape(grid)
        return found.amax((3, 5))
    return sum(terms[1:], terms[0]).reshape(grid).mean((3, 5))
