# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch's kernels ask of values, and the decompositions of their ops do not."""

from __future__ import annotations

import math

import torch

from weft.frontend.graph import Value
from weft.frontend.locations import location_of
from weft.frontend.lowered import Unsupported
from weft.frontend.ops.index import check_range
from weft.frontend.table import Site, checks


@checks("one_hot.default")
def one_hot(site: Site, x: Value, classes: int = -1) -> None:
    check_range(site, x, 0, classes, f"RuntimeError: a class is not in [0, {classes})")


@checks("binary_cross_entropy.default")
def binary_cross_entropy(site: Site, x: Value, target: Value, *_) -> None:
    for name, each in (("input", x), ("target", target)):
        message = f"RuntimeError: all elements of {name} should be between 0 and 1"
        _check_portion(site, each, message)


@checks("pixel_shuffle.default", "pixel_unshuffle.default")
def pixel_shuffle(site: Site, x: Value, *_) -> None:
    if not x.size:  # PyTorch gives a tensor of the argument's shape
        raise Unsupported(f"{site.target} of no elements", location_of(site.node))


@checks("native_group_norm.default")
def native_group_norm(site: Site, x: Value, *_) -> None:
    if not site.lying.is_contiguous():
        raise Unsupported(f"PyTorch refuses {site.target} of such strides", location_of(site.node))


@checks(
    *("native_batch_norm.default", "_native_batch_norm_legit.default"),
    *("_native_batch_norm_legit.no_stats", "_native_batch_norm_legit_functional.default"),
    "_batch_norm_with_update_functional.default",
)
def native_batch_norm(site: Site, x: Value, *_) -> None:
    if not x.size:
        raise Unsupported(f"PyTorch refuses {site.target} of no elements", location_of(site.node))


@checks("quantile.default", "nanquantile.default")
def quantile(site: Site, x: Value, q: Value, *_, **__) -> None:
    _check_portion(site, q, f"RuntimeError: {site.target}: q must be between 0 and 1")


@checks("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(site: Site, sequence: Value, *_, sorter: Value | None = None, **__) -> None:
    if sorter is not None and sorter.rank:
        message = "RuntimeError: searchsorted: sorter index out of range"
        check_range(site, sorter, 0, sequence.shape[-1], message)


@checks("max_unpool2d.default", "max_unpool3d.default")
def max_unpool(site: Site, x: Value, indices: Value, output_size: list[int], *_) -> None:
    if _come_from_sums(site.node.args[1]):
        reason = f"{site.target} puts values where sums, which are rounded otherwise, are largest"
        raise Unsupported(reason, location_of(site.node))
    message = f"RuntimeError: an invalid max index: the output has the sizes {output_size}"
    check_range(site, indices, 0, math.prod(output_size), message)


# Two equal sums in another order are no longer equal.
_SUMS = ("conv", "linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "scaled_dot")


def _come_from_sums(node: torch.fx.Node) -> bool:
    """Whether a contraction is among what gives the node's value."""
    seen, queue = set(), [node]
    while queue:
        node = queue.pop()
        if node not in seen:
            seen.add(node)
            queue += node.all_input_nodes
            if str(node.target).startswith(tuple(f"aten.{name}" for name in _SUMS)):
                return True
    return False


def _check_portion(site: Site, x: Value, message: str) -> None:
    """Asserts 0 <= x <= 1, which NaN is not."""
    b = site.builder
    if x.size:
        b.check(b.binary("and", b.compare("ge", x, 0), b.compare("le", x, 1)), message)
