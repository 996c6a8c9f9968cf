# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bits, truth, comparison, choice and casts, element by element."""

from __future__ import annotations

import torch

from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Promotion, Site, lowers


def _named(*names: str) -> list[str]:
    return [f"{name}.{overload}" for name in names for overload in ("Tensor", "Scalar")]


@lowers(*_named("bitwise_and", "__and__", "bitwise_or", "__or__", "bitwise_xor", "__xor__"))
def bitwise(site: Site, x, y):
    op = site.target.split(".")[1].removeprefix("bitwise_").strip("_")
    return site.finish(site.builder.binary(op, *site.promoted(x, y, kind=Promotion.NO_OPMATH)))


@lowers("logical_and.default", "logical_or.default", "logical_xor.default")
def logical(site: Site, x, y):
    op = site.target.split(".")[1].removeprefix("logical_")
    truths = [site.builder.broadcast(truth(site, v), site.shape) for v in (x, y)]
    return site.finish(site.builder.binary(op, *truths))


def truth(site: Site, x: Value) -> Value:
    return x if x.dtype == torch.bool else site.builder.compare("ne", x, 0)


@lowers(*_named("eq", "ne", "lt", "le", "gt", "ge"))
def compare(site: Site, x, y):
    predicate = site.target.split(".")[1]
    operands = site.promoted(x, y, kind=Promotion.ALWAYS_BOOL)
    return site.finish(site.builder.compare(predicate, *operands))  # eq_ gives no booleans


# Choice and casts


@lowers("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(site: Site, condition, x, y):
    condition = site.operand(truth(site, condition), torch.bool)
    return site.builder.select(condition, site.operand(x, site.dtype), site.operand(y, site.dtype))


@lowers("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(site: Site, x, mask, value):
    return where(site, mask, value, x)


@lowers(
    *("to.dtype", "to.dtype_layout", "to.device", "to.other", "to.prim_dtype"),
    *("_to_copy.default", "type_as.default", "clone.default", "contiguous.default"),
    *("alias.default", "lift_fresh.default", "lift_fresh_copy.default"),
    *("lift.default", "positive.default", "resolve_conj.default", "resolve_neg.default"),
    *("_autocast_to_full_precision.default", "_autocast_to_reduced_precision.default"),
    "requires_grad_.default",
)
def cast(site: Site, x, *_, **__):
    if site.results[0].device.type != "cpu":
        raise Decline(f"the result is on device {site.results[0].device}")
    return site.operand(x, site.dtype)  # a number, where torch.func's layers wrap one


@lowers("detach.default")
def detach(site: Site, x):
    return site.builder.detached(x)


@lowers("copy.default")
def copy(site: Site, x, source, non_blocking=False):
    return site.operand(source, site.dtype)
