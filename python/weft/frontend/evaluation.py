# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each op of the graph means, said in torch."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from weft.frontend.fallback import call_fallback
from weft.frontend.graph import SUBGRADIENT
from weft.frontend.philox import philox
from weft.frontend.scattering import scattered

EVALUATE: dict[str, Callable[..., Any]] = {}
Attrs = dict[str, Any]


def evaluates(*ops: str):
    def enter(function):
        EVALUATE.update({f"weft.{op}": function for op in ops})
        return function

    return enter


def check_operands(op: str, operands: list[torch.Tensor]) -> None:
    """Asserts what the op's verifier does of shapes and types."""
    name = op.removeprefix("weft.")
    if name in _BINARY or name in ("cmp", "max", "min"):
        x, y = operands
        assert x.shape == y.shape and x.dtype == y.dtype, (op, x.shape, y.shape, x.dtype, y.dtype)
    if name in _BINARY or name in ("cmp", "fma", "philox"):
        assert len({(x.shape, x.dtype) for x in operands}) == 1, (op, operands)
    if name == "select":
        condition, x, y = operands
        assert condition.shape == x.shape == y.shape and x.dtype == y.dtype, op
        assert condition.dtype == torch.bool, op
    if name in ("layer_norm", "rms_norm", "group_norm", "batch_norm", "dot_general", "conv"):
        assert len({x.dtype for x in operands}) == 1, (op, [x.dtype for x in operands])


def _case(attribute: Any) -> str:
    return re.fullmatch(r"#weft\.\w+<(\w+)>", attribute["mlir"]).group(1)


_UNARY = {
    "neg": torch.neg,
    "abs": torch.abs,
    "sign": torch.sign,
    "not": torch.bitwise_not,
    "round_even": torch.round,
    "silu": F.silu,
} | {
    name: getattr(torch, name)
    for name in (
        *("ceil", "floor", "trunc", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
        *("rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
        *("asinh", "acosh", "atanh", "sigmoid", "erf", "erfc"),
    )
}
for _name, _function in _UNARY.items():
    EVALUATE[f"weft.{_name}"] = lambda node, attrs, xs, types, f=_function: f(xs[0])


def _div(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc")


_BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": _div,
    "rem": torch.fmod,
    "pow": torch.pow,
    "atan2": torch.atan2,
    "copysign": torch.copysign,
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
}
for _name, _function in _BINARY.items():
    EVALUATE[f"weft.{_name}"] = lambda node, attrs, xs, types, f=_function: f(*xs)


@evaluates("max", "min")
def _extremum(node, attrs: Attrs, xs, types):
    is_max, (x, bound) = node["op"] == "weft.max", xs
    match attrs.get(SUBGRADIENT):
        case "zero":
            return torch.where(x <= bound if is_max else x >= bound, bound, x)
        case "one":  # what is no number, or has no bound, has no slope
            is_kept, is_lost = (x >= bound, x < bound) if is_max else (x <= bound, x > bound)
            return torch.where(is_kept, x, torch.where(is_lost, bound, (x + bound).detach()))
    return torch.maximum(x, bound) if is_max else torch.minimum(x, bound)


@evaluates("sqrt")
def _sqrt(node, attrs: Attrs, xs, types):
    if attrs.get(SUBGRADIENT) != "zero":
        return torch.sqrt(xs[0])
    return torch.where(xs[0] == 0, torch.zeros_like(xs[0]), torch.sqrt(xs[0].where(xs[0] != 0, 1)))


@evaluates("fma")
def _fma(node, attrs: Attrs, xs, types):
    """Rounded once but in float64, for which torch has nothing wider."""
    x, y, z = xs
    if x.dtype == torch.bool:
        return x & y | z
    if not x.is_floating_point():
        return x * y + z
    return (x.double() * y.double() + z.double()).to(x.dtype)


@evaluates("philox")
def _philox(node, attrs: Attrs, xs, types):
    return philox(*xs)


@evaluates("cmp")
def _cmp(node, attrs: Attrs, xs, types):
    return getattr(torch, _case(attrs["predicate"]))(*xs)


@evaluates("select")
def _select(node, attrs: Attrs, xs, types):
    return torch.where(*xs)


class _WithSlopes(torch.autograd.Function):
    """The first operand; the others are what its derivative is along, and by which slopes."""

    @staticmethod
    def forward(ctx, dims, kind, value, *operands):
        ctx.dims, ctx.kind = dims, kind
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*operands)
        return value.clone()

    @staticmethod
    def backward(ctx, cotangent):
        operands = ctx.saved_tensors
        if cotangent is None:  # of a slope, which has none
            return None, None, None, *[None] * len(operands)
        count = len(operands) // 2
        for dim in ctx.dims:
            cotangent = cotangent.unsqueeze(dim)
        given = [_along(ctx.kind, cotangent, slope) for slope in operands[count:]]
        return None, None, None, *given, *[None] * count


def _along(kind: str | None, cotangent: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    product = cotangent * slope
    return torch.where(slope == 0, 0.0, product) if kind == "zero" else product


@evaluates("with_slopes")
def _with_slopes(node, attrs: Attrs, xs, types):
    return _WithSlopes.apply(attrs["dims"], attrs.get(SUBGRADIENT), *xs)


@evaluates("convert")
def _convert(node, attrs: Attrs, xs, types):
    return xs[0].to(types[0][0])


@evaluates("constant")
def _constant(node, attrs: Attrs, xs, types):
    ((form, value),) = attrs["value"].items()
    dtype, shape = types[0]
    if form == "splat":
        return torch.full(shape, _number(value), dtype=dtype)
    return torch.tensor([_number(v) for v in value], dtype=dtype).reshape(shape)


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value


@evaluates("iota")
def _iota(node, attrs: Attrs, xs, types):
    dtype, shape = types[0]
    along = [-1 if d == attrs["dim"] else 1 for d in range(len(shape))]
    return torch.arange(shape[attrs["dim"]]).to(dtype).reshape(along).expand(shape)


@evaluates("broadcast_in_dim")
def _broadcast_in_dim(node, attrs: Attrs, xs, types):
    _, shape = types[0]
    placed = [1] * len(shape)
    assert attrs["dims"] == sorted(set(attrs["dims"])), node
    for dim, size in zip(attrs["dims"], xs[0].shape, strict=True):
        placed[dim] = size
    return xs[0].reshape(placed).expand(shape)


@evaluates("reshape")
def _reshape(node, attrs: Attrs, xs, types):
    return xs[0].reshape(types[0][1])


@evaluates("transpose")
def _transpose(node, attrs: Attrs, xs, types):
    return xs[0].permute(attrs["perm"])


@evaluates("slice")
def _slice(node, attrs: Attrs, xs, types):
    for limit, size in zip(attrs["limit"], xs[0].shape):
        assert 0 <= limit <= size, node
    triples = zip(attrs["start"], attrs["limit"], attrs["stride"], strict=True)
    return xs[0][tuple(slice(*triple) for triple in triples)]


@evaluates("pad")
def _pad(node, attrs: Attrs, xs, types):
    x, value = xs
    assert x.dtype == value.dtype and value.dim() == 0, node
    amounts = [n for pair in zip(attrs["low"], attrs["high"]) for n in pair]
    assert min(amounts) >= 0, node
    by_torch = [n for d in range(x.dim())[::-1] for n in (attrs["low"][d], attrs["high"][d])]
    return F.pad(x, by_torch, value=value.item())


@evaluates("concat")
def _concat(node, attrs: Attrs, xs, types):
    assert len({x.dtype for x in xs}) == 1, node
    return torch.cat(xs, attrs["dim"])


@evaluates("reverse")
def _reverse(node, attrs: Attrs, xs, types):
    return xs[0].flip(attrs["dims"])


@evaluates("reduce")
def _reduce(node, attrs: Attrs, xs, types):
    x = xs[0]
    if attrs.get(SUBGRADIENT) == "first":
        return getattr(torch, _case(attrs["kind"]))(x, *attrs["dims"]).values
    if _case(attrs["kind"]) in ("max", "min"):
        values = getattr(torch, f"a{_case(attrs['kind'])}")(x, attrs["dims"])
        is_shared = attrs.get(SUBGRADIENT) == "one" and x.requires_grad
        return _shared(x, values, attrs["dims"]) if is_shared else values
    if attrs.get(SUBGRADIENT) == "zero":
        return x.prod(dtype=x.dtype)
    for dim in sorted(attrs["dims"], reverse=True):
        x = _reduce_one(_case(attrs["kind"]), x, dim)
    return x


def _shared(x: torch.Tensor, values: torch.Tensor, dims: list[int]) -> torch.Tensor:
    """`values`, extrema of x along dims, with a slope that equal ones share, and NaNs as well."""
    kept = values.reshape([1 if d in dims else n for d, n in enumerate(x.shape)])
    found = (x == kept) | (x.isnan() & kept.isnan())
    part = found.to(x.dtype) / found.sum(dims, keepdim=True)
    return (torch.where(found, x, 0) * part.detach()).sum(dims)


def _reduce_one(kind: str, x: torch.Tensor, dim: int) -> torch.Tensor:
    match kind:
        case "sum" | "prod":
            return getattr(torch, kind)(x, dim, dtype=x.dtype)
        case "any" | "all":
            assert x.dtype == torch.bool
            return getattr(torch, kind)(x, dim)
    return getattr(torch, f"a{kind}")(x, dim)


@evaluates("arg_reduce")
def _arg_reduce(node, attrs: Attrs, xs, types):
    return getattr(torch, f"arg{_case(attrs['kind'])}")(xs[0], attrs["dim"])


@evaluates("cumulative")
def _cumulative(node, attrs: Attrs, xs, types):
    kind, dim = _case(attrs["kind"]), attrs["dim"]
    if kind in ("max", "min"):
        return getattr(torch, f"cum{kind}")(xs[0], dim).values
    return getattr(torch, f"cum{kind}")(xs[0], dim, dtype=xs[0].dtype)


@evaluates("reduce_window")
def _reduce_window(node, attrs: Attrs, xs, types):
    x, rank = xs[0], xs[0].dim()
    for dim in range(rank):
        window, dilation = attrs["window"][dim], attrs["dilations"][dim]
        x = x.unfold(dim, (window - 1) * dilation + 1, attrs["strides"][dim])
    x = x[(..., *(slice(None, None, d) for d in attrs["dilations"]))]
    x, kind = x.flatten(rank), _case(attrs["kind"])
    if kind not in ("max", "min"):
        return _reduce_one(kind, x, rank)
    # The slope goes to the first of equal ones or, as in PyTorch's pooling, to the last NaN.
    place = getattr(x, f"arg{kind}")(rank, keepdim=True)
    if x.dtype.is_floating_point:
        last = x.shape[rank] - 1 - x.isnan().flip(rank).byte().argmax(rank, keepdim=True)
        place = torch.where(x.isnan().any(rank, keepdim=True), last, place)
    return x.gather(rank, place).squeeze(rank)


def _as_a_matmul(attrs: Attrs, lhs: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor | None:
    """Whose derivative reads the operands themselves, or views of them, as that of the user's op
    does; None if it is none."""
    contract = [*attrs["lhsContract"]]
    if attrs["lhsBatch"] or rhs.dim() != 2 or lhs.dim() < 2 or contract != [lhs.dim() - 1]:
        return None
    return lhs @ (rhs if attrs["rhsContract"][0] == 0 else rhs.t())


@evaluates("dot_general")
def _dot_general(node, attrs: Attrs, xs, types):
    xs = [x.to(dtype) for x in xs for dtype, _ in types] or xs
    if (product := _as_a_matmul(attrs, *xs)) is not None:
        return product
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    lhs = [next(letters) for _ in range(xs[0].dim())]
    rhs = [next(letters) for _ in range(xs[1].dim())]
    for kind in ("Batch", "Contract"):
        for left, right in zip(attrs[f"lhs{kind}"], attrs[f"rhs{kind}"], strict=True):
            rhs[right] = lhs[left]
    batch = [lhs[d] for d in attrs["lhsBatch"]]
    gone = {lhs[d] for d in attrs["lhsContract"]} | set(batch)
    out = batch + [a for a in lhs if a not in gone] + [a for a in rhs if a not in gone]
    return torch.einsum(f"{''.join(lhs)},{''.join(rhs)}->{''.join(out)}", *xs)


@evaluates("conv")
def _conv(node, attrs: Attrs, xs, types):
    x, weight = xs
    pairs = list(zip(attrs["padLow"], attrs["padHigh"], strict=True))
    x = F.pad(x, [n for pair in pairs[::-1] for n in pair])
    function = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(pairs)]
    return function(x, weight, None, attrs["strides"], 0, attrs["dilations"], attrs["groups"])


@evaluates("gather")
def _gather(node, attrs: Attrs, xs, types):
    x, *indices = xs
    dims = attrs["indexedDims"]
    assert len({i.shape for i in indices}) == 1 and len(indices) == len(dims), node
    kept = [d for d in range(x.dim()) if d not in dims]
    clamped = [i.clamp(0, max(x.shape[d] - 1, 0)) for d, i in zip(dims, indices)]
    return x.permute([*dims, *kept])[tuple(clamped)]


@evaluates("scatter")
def _scatter(node, attrs: Attrs, xs, types):
    x, updates, *indices = xs
    dims = attrs["indexedDims"]
    assert x.dtype == updates.dtype and len(indices) == len(dims), node
    return scattered(_case(attrs["kind"]), x, updates, indices, dims)


@evaluates("grouped_dot")
def _grouped_dot(node, attrs: Attrs, xs, types):
    rows, weights, ends = xs
    result, start = rows.new_zeros(len(rows), weights.shape[1]), 0
    for weight, end in zip(weights, ends.clamp(0, len(rows)).tolist()):
        result[start:end] = rows[start:end] @ weight.T
        start = end
    return [result]


@evaluates("sort")
def _sort(node, attrs: Attrs, xs, types):
    dim, descending = attrs["dim"], attrs["descending"]
    results = torch.sort(xs[0], dim=dim, descending=descending, stable=True)
    return [each.narrow(dim, 0, attrs["count"]) for each in results]


@evaluates("assert")
def _assert(node, attrs: Attrs, xs, types):
    if not xs[0].all():
        raise AssertionError(attrs["message"])
    return ()


@evaluates("torch_fallback")
def _torch_fallback(node, attrs: Attrs, xs, types):
    return call_fallback(attrs["target"], attrs["arguments"])(xs)


@evaluates("softmax", "log_softmax")
def _softmax(node, attrs: Attrs, xs, types):
    return getattr(torch, node["op"].removeprefix("weft."))(xs[0], attrs["dim"])


def _optional(attrs: Attrs, xs) -> list[torch.Tensor | None]:
    """The operands with None for those that are absent."""
    rest = list(xs)
    return [rest.pop(0) if size else None for size in segment_sizes(attrs)]


def segment_sizes(attrs: Attrs) -> list[int]:
    """How many operands each group of an op with several has."""
    text = attrs["operandSegmentSizes"]["mlir"].partition(":")[2]
    return [int(size) for size in re.findall(r"\d+", text)]


@evaluates("layer_norm")
def _layer_norm(node, attrs: Attrs, xs, types):
    x, weight, bias = _optional(attrs, xs)
    shape = x.shape[x.dim() - attrs["normalizedDims"] :]
    return F.layer_norm(x, shape, weight, bias, attrs["eps"])


@evaluates("rms_norm")
def _rms_norm(node, attrs: Attrs, xs, types):
    shape = xs[0].shape[xs[0].dim() - attrs["normalizedDims"] :]
    return F.rms_norm(xs[0], shape, *xs[1:], eps=attrs["eps"])


@evaluates("group_norm")
def _group_norm(node, attrs: Attrs, xs, types):
    x, weight, bias = _optional(attrs, xs)
    groups = x.reshape(x.shape[0], attrs["groups"], -1)
    groups = F.layer_norm(groups, groups.shape[-1:], eps=attrs["eps"])
    channel = [1, -1] + [1] * (x.dim() - 2)
    result = groups.reshape(x.shape)
    result = result if weight is None else result * weight.reshape(channel)
    return result if bias is None else result + bias.reshape(channel)


@evaluates("batch_norm")
def _batch_norm(node, attrs: Attrs, xs, types):
    x, mean, variance, weight, bias = _optional(attrs, xs)
    if mean.requires_grad or variance.requires_grad:  # which F.batch_norm has for constants
        channel = [1, -1] + [1] * (x.dim() - 2)
        scale = (variance + attrs["eps"]).rsqrt()
        result = (x - mean.reshape(channel)) * scale.reshape(channel)
        result = result if weight is None else result * weight.reshape(channel)
        return result if bias is None else result + bias.reshape(channel)
    return F.batch_norm(x, mean, variance, weight, bias, False, 0.0, attrs["eps"])


@evaluates("gelu")
def _gelu(node, attrs: Attrs, xs, types):
    return F.gelu(xs[0], approximate="tanh" if _case(attrs["kind"]) == "tanh" else "none")


@evaluates("attention")
def _attention(node, attrs: Attrs, xs, types):
    q, k, v = xs[:3]
    scores = attrs["scale"] * q @ k.transpose(-1, -2)
    if len(xs) == 4:
        mask = xs[3]
        assert mask.shape == scores.shape, node
        hidden = torch.zeros_like(scores).masked_fill(mask.logical_not(), -math.inf)
        scores = scores + (hidden if mask.dtype == torch.bool else mask)
    if attrs["causal"]:
        kept = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(kept.logical_not(), -math.inf)
    # A row whose keys are all hidden is zero.
    return torch.softmax(scores, -1).nan_to_num(0.0) @ v
