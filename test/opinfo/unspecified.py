# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops whose values PyTorch leaves open, each with the reason: shapes, types, strides and aliasing
are compared still."""

_MEMORY = "shows memory that nobody has written"

UNSPECIFIED: dict[str, str] = {
    "empty": _MEMORY,
    "empty_like": _MEMORY,
    "empty_permuted": _MEMORY,
    "empty_strided": _MEMORY,
    "new_empty": _MEMORY,
    "new_empty_strided": _MEMORY,
    "resize_": "elements beyond the old ones are memory that nobody has written",
    "resize_as_": "elements beyond the old ones are memory that nobody has written",
}
