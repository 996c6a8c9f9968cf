# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that PyTorch runs inside the program: their arguments as JSON, and the call itself.

The template is a JSON array with one entry per argument of the overload's schema, defaults
filled in. Numbers, strings, booleans, null and lists stand for themselves; the rest is
tagged: {"tensor": i} operand i, {"lying": [i, strides]} operand i with strides of its own,
{"complex": i} operand i, whose last dim holds the parts of complex numbers,
{"dtype": "f32"}, {"device": "cpu"}, {"layout": "strided"}, {"memory_format":
"contiguous_format"}, {"float": "inf"}. Where results are complex, it is the only entry of
{"complex": template}, and their last dims hold the parts. Where operands and results are padded,
it is {"counting": [[dims, order], ...], "results": [dims, ...], "of": template}: operands but the
last one, which holds the sizes, are cut to what counts (padded.py), which lies in memory in that
order of dims, and the template has {"size": [coefficients, constant]} for numbers that depend on
the sizes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from weft.frontend.dtypes import DTYPES, NAMES
from weft.frontend.graph import Value
from weft.frontend.lowered import Unsupported
from weft.frontend.padded import PaddedDims, padded_with_zeros, part_of_padded
from weft.frontend.pairs import Pair


@dataclass(frozen=True)
class Lying:
    """A tensor argument that has to lie in memory as it does in eager mode."""

    value: Any
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Joined:
    """A tensor argument of complex numbers, as `torch.view_as_real` shows them."""

    value: Any


def encode_arguments(
    target: torch._ops.OpOverload,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    operand: Callable[[Any], int | None],
    gives_complex: bool = False,
) -> str:
    """The template of one call.

    operand: the operand number of a tensor argument, None for anything that is no tensor.
    gives_complex: whether any result is of complex numbers.
    Raises: Unsupported, if an argument has no JSON form.
    """

    def encode(value: Any) -> Any:
        if isinstance(value, Lying):
            return {"lying": [operand(value.value), list(value.strides)]}
        if isinstance(value, Joined):
            return {"complex": operand(value.value)}
        number = operand(value)
        if number is not None:
            return {"tensor": number}
        if isinstance(value, (list, tuple)):
            return [encode(entry) for entry in value]
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": repr(value)}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, torch.dtype):
            return {"dtype": NAMES.get(value, str(value).removeprefix("torch."))}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, torch.layout) and value == torch.strided:
            return {"layout": "strided"}
        if isinstance(value, torch.memory_format):
            return {"memory_format": str(value).removeprefix("torch.")}
        raise Unsupported(f"{target}: argument {value!r} cannot be written down")

    template = [encode(value) for value in _in_schema_order(target, args, kwargs)]
    return json.dumps({"complex": template} if gives_complex else template)


# They draw as many numbers as their first argument has elements, whatever these are.
_READ_SIZES_ALONE = frozenset(("aten::rand_like", "aten::randn_like", "aten::randint_like"))


def without_values(op: torch._ops.OpOverload, args: Any, constant: Callable[[Value], Value]) -> Any:
    """The arguments of a call, with a constant in the place of a tensor of which the op reads no
    more than how it lies: what is drawn then depends on nothing that the program computes.

    constant: of the type and shape of a value."""
    if op._schema.name not in _READ_SIZES_ALONE:
        return args
    first, *others = args
    if isinstance(first, Lying):
        first = Lying(constant(first.value), first.strides)
    elif isinstance(first, Value):
        first = constant(first)
    return (first, *others)


def operand_number(operands: list[Any], value: Any) -> int | None:
    """The operand number of a tensor argument; a tensor that stands twice is one operand."""
    if not isinstance(value, Value | Pair):
        return None
    for number, operand in enumerate(operands):
        if operand is value:
            return number
    operands.append(value)
    return len(operands) - 1


def call_fallback(target: str, arguments: str) -> Callable[[Sequence[torch.Tensor]], list]:
    """The function that runs `target` on operands and gives its flattened results."""
    op = overload_of(target)
    return _call(op, json.loads(arguments))


def _call(op: torch._ops.OpOverload, template: Any) -> Callable[[Sequence[torch.Tensor]], list]:
    if isinstance(template, dict) and "gradients" in template:
        return _gradients_of(_call(op, template["gradients"]), template)
    if isinstance(template, dict) and "counting" in template:
        return _on_what_counts(op, template)
    if isinstance(template, dict):
        template = template["complex"]

    def run(operands: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        values = [_decode(entry, operands) for entry in template]
        arguments_of = op._schema.arguments
        positional = [v for v, a in zip(values, arguments_of) if not a.kwarg_only]
        named = {a.name: v for v, a in zip(values, arguments_of) if a.kwarg_only}
        return [_as_real(result) for result in flatten_results(op(*positional, **named))]

    return run


def _on_what_counts(
    op: torch._ops.OpOverload, template: dict[str, Any]
) -> Callable[[Sequence[torch.Tensor]], list]:
    def run(operands: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        *padded, sizes = operands
        symbols = sizes.tolist()
        parts = [
            _counted_part(each, dims, order, symbols)
            for each, (dims, order) in zip(padded, template["counting"], strict=True)
        ]
        results = _call(op, _at_sizes(template["of"], symbols))(parts)
        return [
            padded_with_zeros(each, dims, symbols)
            for each, dims in zip(results, template["results"], strict=True)
        ]

    return run


def _counted_part(
    padded: torch.Tensor, dims: PaddedDims, order: Sequence[int], symbols: Sequence[int]
) -> torch.Tensor:
    back = [order.index(dim) for dim in range(len(order))]
    part = part_of_padded(padded, dims, symbols)
    return part.permute(*order).contiguous().permute(*back)


def _at_sizes(template: Any, symbols: Sequence[int]) -> Any:
    if isinstance(template, list):
        return [_at_sizes(each, symbols) for each in template]
    if not isinstance(template, dict):
        return template
    if "size" in template:
        coefficients, constant = template["size"]
        return sum(c * n for c, n in zip(coefficients, symbols)) + constant
    return {tag: _at_sizes(value, symbols) for tag, value in template.items()}


def _gradients_of(
    function: Callable[[Sequence[torch.Tensor]], list], template: dict[str, Any]
) -> Callable[[Sequence[torch.Tensor]], list]:
    """The gradients of the operands `wanted` of a function, which runs once more, along cotangents
    of the results `given`, which follow its operands (VjpIndex.cpp). Differentiable itself."""
    count, given, wanted = template["operands"], template["given"], template["wanted"]

    def run(operands: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        keeps = any(each.requires_grad for each in operands)
        with torch.enable_grad():
            inputs = list(operands[:count])
            for number in wanted:
                each = inputs[number]
                inputs[number] = each.view_as(each) if keeps else each.detach()
                inputs[number].requires_grad_()
            results = function(inputs)
            along = list(zip([results[number] for number in given], operands[count:], strict=True))
            # The zeros that stand for no gradient, in results of gradients, depend on nothing.
            along = [(result, each) for result, each in along if result.requires_grad]
            if not along:
                return [torch.zeros_like(inputs[number]) for number in wanted]
            gradients = torch.autograd.grad(
                [result for result, _ in along],
                [inputs[number] for number in wanted],
                [each for _, each in along],
                create_graph=keeps,
                allow_unused=True,
                materialize_grads=True,
            )
        return list(gradients)

    return run


def _as_real(result: Any) -> Any:
    """Complex numbers as pairs of reals: the dialect has no others."""
    if isinstance(result, torch.Tensor) and result.is_complex():
        return torch.view_as_real(result.resolve_conj())
    return result


def overload_of(target: str) -> torch._ops.OpOverload:
    """The overload named `aten.sort.default`."""
    namespace, name, overload = target.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), name), overload)


def flatten_results(results: Any) -> list[Any]:
    """The tensors of a call's results in order: a tensor, tuples or lists of them."""
    if not isinstance(results, (list, tuple)):
        return [results]
    return [leaf for entry in results for leaf in flatten_results(entry)]


def _in_schema_order(
    target: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]
) -> list[Any]:
    given = list(args)
    for argument in target._schema.arguments[len(args) :]:
        given.append(kwargs.get(argument.name, argument.default_value))
    return given


def _decode(entry: Any, operands: Sequence[torch.Tensor]) -> Any:
    if isinstance(entry, list):
        return [_decode(item, operands) for item in entry]
    if not isinstance(entry, dict):
        return entry
    ((tag, value),) = entry.items()
    match tag:
        case "tensor":
            return operands[value]
        case "lying":
            return _laid(operands[value[0]], value[1])
        case "complex":
            return torch.view_as_complex(operands[value].contiguous())
        case "dtype":
            return DTYPES[value] if value in DTYPES else getattr(torch, value)
        case "device":
            return torch.device(value)
        case "layout" | "memory_format":
            return getattr(torch, value)
        case "float":
            return float(value)
    raise ValueError(f"expected a tag of a fallback argument, found {tag!r}")


def _laid(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """A copy with these strides, which may show elements more than once."""
    shown = tensor[tuple(slice(1 if stride == 0 else None) for stride in strides)]
    copy = torch.empty_strided(shown.shape, strides, dtype=tensor.dtype).copy_(shown)
    return copy.as_strided(tensor.shape, strides)
