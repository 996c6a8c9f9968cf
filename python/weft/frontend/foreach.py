# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops on lists of tensors as ops on each tensor, which is what PyTorch's kernels on the CPU do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from weft.frontend.inplace import argument_given

_PREFIX = "aten::_foreach_"
# By the overload of the list's op, that of the op on one tensor.
_OVERLOADS = {
    "": "default",
    "List": "Tensor",
    "Tensor": "Tensor",
    "Scalar": "Scalar",
    "ScalarList": "Scalar",
}
_POWERS = {
    "List": "Tensor_Tensor",
    "Scalar": "Tensor_Scalar",
    "ScalarList": "Tensor_Scalar",
    "ScalarAndTensor": "Scalar",
}
_OF_ONE_OVERLOAD = ("addcdiv", "addcmul", "copy", "max", "mm", "zero")
# Of these the kernels clamp, which differs in NaN and in what a number's type makes of it.
_CLAMPS = {"maximum": "clamp_min", "minimum": "clamp_max"}


def write_out_foreach(graph: torch.fx.Graph) -> None:
    """In place. Calls that have no form on one tensor stay as they are."""
    for node in list(graph.nodes):
        schema = getattr(node.target, "_schema", None)
        if isinstance(schema, torch._C.FunctionSchema) and schema.name.startswith(_PREFIX):
            call = _call_on_one(node.target)
            if call is not None:
                _write_out(node, *call)


def _call_on_one(op: torch._ops.OpOverload) -> tuple[torch._ops.OpOverload, Callable] | None:
    """The op on one tensor, and what it is called with for the arguments of one."""
    name, overload = op._schema.name.removeprefix(_PREFIX), op._schema.overload_name
    plain, end = name.removesuffix("_"), "_" if name.endswith("_") else ""
    if plain == "norm":
        return torch.ops.aten.linalg_vector_norm.default, _norm_of_one
    if plain in ("addcdiv", "addcmul"):
        if overload == "Tensor":  # whose elements become numbers
            return None
        packet = getattr(torch.ops.aten, plain + end)
        return packet.default, _with_value
    packet = getattr(torch.ops.aten, _CLAMPS.get(plain, plain) + end, None)
    overload = (_POWERS if name == "pow" else _OVERLOADS).get(overload)
    if plain in _OF_ONE_OVERLOAD:
        overload = "default"
    elif plain.startswith("clamp") or plain in _CLAMPS:
        overload = "default" if overload == "Scalar" else overload
    found = getattr(packet, overload or "", None)
    return None if found is None else (found, lambda *args, **kwargs: (args, kwargs))


def _norm_of_one(
    x: Any, ord: Any = 2, dtype: torch.dtype | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (x, ord, None, False), {"dtype": dtype}


def _with_value(
    x: Any, first: Any, second: Any, value: Any = 1
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (x, first, second), {"value": value}


def _write_out(node: torch.fx.Node, op: torch._ops.OpOverload, arguments: Callable) -> None:
    graph, is_write = node.graph, node.target._schema.is_mutable
    getitems = list(node.users)
    results = []
    with graph.inserting_before(node):
        for number, (args, kwargs) in enumerate(_calls(node)):
            args, kwargs = arguments(*args, **kwargs)
            made = graph.call_function(op, args, kwargs)
            made.meta = dict(node.meta)
            made.meta["val"] = args[0].meta["val"] if is_write else node.meta["val"][number]
            results.append(made)
    for getitem in getitems:
        made = results[getitem.args[1]]
        getitem.replace_all_uses_with(made)
        graph.erase_node(getitem)
        made.name = getitem.name  # by which the signature knows what the program gives
    graph.erase_node(node)


def _calls(node: torch.fx.Node) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """For each tensor of the list, the arguments of the op on it alone."""
    declared = node.target._schema.arguments
    given = [argument_given(node, number) for number in range(len(declared))]
    lists = [str(each.type).startswith("List[") for each in declared]
    count = next(len(value) for value, is_list in zip(given, lists) if is_list)
    for number in range(count):
        args, kwargs = [], {}
        for argument, value, is_list in zip(declared, given, lists):
            if value is None and argument.has_default_value():
                continue
            one = value[number] if is_list else value
            if argument.kwarg_only:
                kwargs[argument.name] = one
            else:
                args.append(one)
        yield tuple(args), kwargs
