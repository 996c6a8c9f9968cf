# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch leaves open, op by op, each with the reason: values, of which shapes, types, strides
and aliasing are compared still; and signs of zeros."""

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

_REGISTERS = "of two zeros, eager's vector code gives another than its code for the rest of a row"
_EQUAL = "of two zeros either is the larger: eager's kernels of one function give different ones"

ZEROS_OF_ANY_SIGN: dict[str, str] = {
    "amax": _REGISTERS,
    "amin": _REGISTERS,
    "aminmax": _REGISTERS,
    "clamp": _REGISTERS,
    "clamp_max": _REGISTERS,
    "clamp_min": _REGISTERS,
    "max.binary": _REGISTERS,
    "max.reduction_no_dim": _REGISTERS,
    "maximum": _REGISTERS,
    "min.binary": _REGISTERS,
    "min.reduction_no_dim": _REGISTERS,
    "minimum": _REGISTERS,
    "nn.functional.softshrink": _REGISTERS,
    **{f"nn.functional.max_pool{n}d": _EQUAL for n in (1, 2, 3)},
    **{f"nn.functional.adaptive_max_pool{n}d": _EQUAL for n in (1, 2, 3)},
    **{f"scatter_reduce.{kind}": _EQUAL for kind in ("amax", "amin")},
    "nn.functional.embedding_bag": _EQUAL,
}

# Values of finite arguments, where eager's are none.
OVERFLOWING: dict[str, str] = {
    "nn.functional.scaled_dot_product_attention": (
        "rows whose scores overflow are NaN or 0 by which of eager's kernels runs"
    ),
}

# Values where arguments are infinite.
INFINITE: dict[str, str] = {
    f"nn.functional.conv_transpose{n}d": (
        "an infinite weight times a border's zeros is NaN in eager's convolutions, too, but not in "
        "those that it computes through products of matrices"
    )
    for n in (1, 2, 3)
}
