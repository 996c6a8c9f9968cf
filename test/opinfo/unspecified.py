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
_ORDER = "the zeros of products and sums have the sign that the order of operations gives them"
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
    **{f"masked.{kind}": _REGISTERS for kind in ("amax", "amin")},
    **{f"scatter_reduce.{kind}": _EQUAL for kind in ("amax", "amin")},
    **{f"{kind}.reduction_with_dim": _EQUAL for kind in ("max", "min")},
    **{f"index_reduce.{kind}": _EQUAL for kind in ("amax", "amin")},
    **dict.fromkeys(("msort", "sort", "topk", "kthvalue"), _EQUAL),
    "nn.functional.embedding_bag": _EQUAL,
    "_batch_norm_with_update": _ORDER,
    "native_layer_norm": _ORDER,
    "linalg.vecdot": _ORDER,
    **{f"nn.functional.conv_transpose{n}d": _ORDER for n in (1, 2, 3)},
    "tensordot": _ORDER,
    "linalg.lstsq": _ORDER,
    "linalg.lstsq.grad_oriented": _ORDER,
    "nn.functional.interpolate.bicubic": _ORDER,
    "nn.functional.interpolate.bilinear": _ORDER,
    "nn.functional.nll_loss": _ORDER,
}

_META = (
    "torch's meta kernel tells other strides than its own kernel's, so that the first call keeps "
    "the program away"
)

STRIDES: dict[str, str] = {
    "_batch_norm_with_update": _META,
    "_native_batch_norm_legit": _META,
    "native_batch_norm": _META,
    "nn.functional.nll_loss": _META,
    "normal": _META,
    "slice_scatter": _META,
}

_UNCHECKED = "reads beyond the end of weights that are too short for the channels"
_OTHER_ROWS = "selects or sorts in rows without a stride otherwise: other places of equal elements"

_RANK = "has the rank that rounding gives numbers of such sizes, by where they lie in memory"

# Variations that are not judged.
VARIATIONS: dict[tuple[str, str], str] = {
    **{
        (op, variation): _UNCHECKED
        for op in ("_batch_norm_with_update", "_native_batch_norm_legit", "native_batch_norm")
        for variation in ("batch of one", "size 0")
    },
    **{
        (op, "expanded"): _OTHER_ROWS
        for op in ("argsort", "kthvalue", "median", "nanmedian", "sort", "topk")
    },
    **{
        (op, variation): _RANK
        for op in ("linalg.lstsq", "linalg.lstsq.grad_oriented")
        for variation in ("extremes", "denormals")
    },
    ("nn.functional.multilabel_margin_loss", "size 0"): _MEMORY,
}

# Values where arguments are NaN or infinite.
NOT_FINITE: dict[str, str] = {
    "nn.functional.scaled_dot_product_attention": (
        "what is NaN at a hidden position is NaN times zero, or left out, by where blocks end"
    ),
    "cdist": "the largest of distances and NaN is NaN or not by the place of the element in a row",
    **{
        f"nn.functional.conv_transpose{n}d": (
            "an infinite weight times a border's zeros is NaN in eager's convolutions, too, but "
            "not in those that it computes through products of matrices"
        )
        for n in (1, 2, 3)
    },
}
