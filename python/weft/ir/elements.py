# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants of the IR as arrays, and attributes as Python values."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from weft._compiler import Elements, Syntax
from weft.frontend.dtypes import DTYPES, NAMES


def to_elements(value: Any) -> Elements:
    """A constant of a tensor, an array, or what numpy makes an array of. Whole numbers become
    i64, other numbers f32, unless the array has a type of its own.

    Raises: TypeError for element types that the graph does not have.
    """
    tensor = to_tensor(value).detach()
    if tensor.dtype not in NAMES:
        raise TypeError(f"expected a dtype among {sorted(DTYPES)}, found {tensor.dtype}")
    flat = tensor.contiguous().reshape(-1)
    data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return Elements(NAMES[tensor.dtype], list(tensor.shape), data)


def to_tensor(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return torch.from_numpy(np.ascontiguousarray(value).reshape(np.shape(value)))
    return torch.tensor(value)


def from_elements(elements: Elements) -> torch.Tensor:
    dtype = DTYPES[elements.dtype]
    if not elements.data:
        return torch.empty(elements.shape, dtype=dtype)
    return torch.frombuffer(bytearray(elements.data), dtype=dtype).reshape(elements.shape)


def to_array(tensor: torch.Tensor) -> np.ndarray:
    """numpy has no bf16: such tensors become float32, which holds each of their values."""
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def to_python(attribute: Any) -> Any:
    """An attribute as users see it: tensors as numpy arrays, a unit attribute as True."""
    if isinstance(attribute, Elements):
        return to_array(from_elements(attribute))
    if isinstance(attribute, list):
        return [to_python(each) for each in attribute]
    if isinstance(attribute, dict):
        return {name: to_python(each) for name, each in attribute.items()}
    return True if attribute is None else attribute


def from_python(value: Any) -> Any:
    """Undoes `to_python`, but for the kinds of which a definition decides: see `emission`."""
    if isinstance(value, (np.ndarray, torch.Tensor)):
        return to_elements(value)
    if isinstance(value, np.generic):
        return value.item()
    return value


__all__ = [
    "Elements",
    "Syntax",
    "from_elements",
    "from_python",
    "to_array",
    "to_elements",
    "to_python",
    "to_tensor",
]
