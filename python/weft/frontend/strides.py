# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How tensors lie in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
import torch

from weft.frontend.lowered import Unsupported


def order_of(value: torch.Tensor) -> list[int] | None:
    """Dims from outermost to innermost, None if the strides are no dense permutation."""
    if value.layout != torch.strided:
        raise Unsupported(f"a tensor of layout {value.layout}")
    if value.is_contiguous():
        return list(range(value.dim()))
    # Dims of size 1 have any stride; they keep their place.
    order = sorted(range(value.dim()), key=lambda d: -value.stride(d) if value.shape[d] > 1 else 0)
    step = 1
    for dim in sorted(order, key=lambda d: value.stride(d)):
        if value.shape[dim] != 1:
            if value.stride(dim) != step:
                return None
            step *= value.shape[dim]
    return order


def shows_twice(value: torch.Tensor) -> bool:
    """Whether it may show an element of memory at two indices: where the outer of two dims steps
    within what the inner ones span."""
    span = 0
    if not is_static(value):
        return True
    for stride, size in sorted(zip(value.stride(), value.shape)):
        if size > 1:
            if stride <= span:
                return True
            span += stride * (size - 1)
    return False


def storage_of(value: torch.Tensor) -> int:
    return value.untyped_storage()._cdata


def is_static(value: torch.Tensor) -> bool:
    """Whether no size depends on data."""
    return not any(isinstance(size, torch.SymInt) for size in value.shape)


def same_geometry(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether two tensors of one storage that begin at one place show the same elements."""
    return x.shape == y.shape and x.stride() == y.stride() and x.dtype == y.dtype


def share_elements(values: Sequence[torch.Tensor]) -> bool:
    """Tensors of one storage: whether any element is shown by two of them."""
    values = [value for value in values if is_static(value) and value.numel()]
    if len(values) < 2:
        return False
    if len({value.dtype for value in values}) > 1:
        return True
    itemsize = values[0].dtype.itemsize
    shown = numpy.zeros(values[0].untyped_storage().nbytes() // itemsize, bool)
    for value in values:
        view = numpy.lib.stride_tricks.as_strided(
            shown[value.storage_offset() :], value.shape, value.stride()
        )
        if view.any():
            return True
        view[...] = True
    return False
