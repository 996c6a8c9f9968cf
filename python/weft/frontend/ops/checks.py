# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch's kernels ask of values, and the decompositions of their ops do not."""

from __future__ import annotations

import math

from weft.frontend.graph import Value
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
    message = f"RuntimeError: an invalid max index: the output has the sizes {output_size}"
    check_range(site, indices, 0, math.prod(output_size), message)


def _check_portion(site: Site, x: Value, message: str) -> None:
    """Asserts 0 <= x <= 1, which NaN is not."""
    b = site.builder
    if x.size:
        b.check(b.binary("and", b.compare("ge", x, 0), b.compare("le", x, 1)), message)
