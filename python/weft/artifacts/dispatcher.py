# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which fallbacks torch's C dispatcher can run, and their arguments as it takes them.

It takes 64 bits an argument and believes the caller about their meaning: whatever is not known
here, by the op's schema and the argument template together, goes through `torch.ops`.
"""

from __future__ import annotations

import functools
import json
import struct
from typing import Any

import torch

from weft import _core
from weft.frontend.dtypes import DTYPES
from weft.frontend.fallback import overload_of

# DispatcherCall.h
_TENSOR, _BITS, _CONSTANT, _STRING, _LIST, _SOME, _RESULT = range(7)
_ABSENT = (_BITS, 0)
_WORD = 2**64
_NAMES = {"number": "Scalar", "complex": "complex"}


class _NotTaken(Exception):
    """The dispatcher does not take this; the message says what."""


def way_of(target: str, arguments: str) -> str:
    """How a fallback runs: "dispatcher", or "torch.ops: " and why not by the dispatcher."""
    try:
        _describe(target, arguments)
    except _NotTaken as why:
        return f"torch.ops: {why}"
    return "dispatcher"


def describe_call(target: str, arguments: str) -> tuple[Any, ...] | None:
    """The call of `target` as DispatcherCall.h defines it, None where the dispatcher cannot
    make it. arguments: the template of weft.frontend.fallback."""
    try:
        return _describe(target, arguments)
    except _NotTaken:
        return None


def _describe(target: str, arguments: str) -> tuple[Any, ...]:
    if not _core.has_dispatcher():
        raise _NotTaken("libtorch does not export its dispatcher")
    return _describe_by_schema(overload_of(target), arguments)


@functools.lru_cache(maxsize=1024)
def _describe_by_schema(op: torch._ops.OpOverload, arguments: str) -> tuple[Any, ...]:
    schema, template = op._schema, json.loads(arguments)
    if isinstance(template, dict) and "gradients" in template:
        raise _NotTaken("gradients are autograd's")
    if isinstance(template, dict) and "counting" in template:
        raise _NotTaken("its operands are padded")
    if isinstance(template, dict):
        raise _NotTaken("a result is of complex numbers")
    described = []
    for argument, entry in zip(schema.arguments, template, strict=True):
        try:
            described.append(_argument(argument.real_type, entry))
        except _NotTaken as why:
            raise _NotTaken(f"{argument.name} is {why}") from None
    results = [_is_list_result(result.real_type) for result in schema.returns]
    writing = _writing(op)
    if writing is not None:
        schema = writing
        described += [(_RESULT, number) for number in range(len(results))]
    return (schema.name, schema.overload_name, tuple(described), results)


def _writing(op: torch._ops.OpOverload) -> torch._C.FunctionSchema | None:
    """The overload of `op` that takes the memory of its results, so that they need no copy; of
    none that draws numbers, in the order of that memory."""
    schema = op._schema
    if schema.is_mutable or torch.Tag.nondeterministic_seeded in op.tags:
        return None
    count = len(schema.arguments)
    for each in torch._C._jit_get_schemas_for_operator(schema.name):
        same = list(map(_kind_of, each.arguments[:count])) == list(map(_kind_of, schema.arguments))
        out = each.arguments[count:]
        if same and len(out) == len(schema.returns) and all(map(_is_written, out)):
            return each
    return None


def _kind_of(argument: torch._C.Argument) -> tuple[str, str]:
    return argument.name, str(argument.real_type)


def _is_written(argument: torch._C.Argument) -> bool:
    return argument.is_out and str(argument.real_type) == "Tensor"


def _argument(kind: torch._C.JitType, entry: Any) -> tuple[Any, ...]:
    if kind.kind() == "OptionalType":
        return _ABSENT if entry is None else (_SOME, _argument(kind.getElementType(), entry))
    if kind.kind() == "ListType":
        if not isinstance(entry, list):
            raise _NotTaken("one value for a list")
        return (_LIST, tuple(_argument(kind.getElementType(), item) for item in entry))
    encode = _ENCODERS.get(str(kind))
    if encode is None:
        raise _NotTaken(f"a {_NAMES.get(str(kind), str(kind))}")
    described = encode(entry)
    if described is None:
        raise _NotTaken(f"{entry!r} for a {kind}")
    return described


def _is_list_result(kind: torch._C.JitType) -> bool:
    if str(kind) not in ("Tensor", "List[Tensor]"):
        raise _NotTaken(f"a result is a {kind}")
    return str(kind) != "Tensor"


def _tagged(entry: Any, tag: str) -> Any:
    return entry.get(tag) if isinstance(entry, dict) else None


def _tensor(entry: Any) -> tuple[Any, ...] | None:
    number = _tagged(entry, "tensor")
    return None if number is None else (_TENSOR, number)


def _int(entry: Any) -> tuple[Any, ...] | None:
    # Of a bool torch.ops makes a number, too.
    if isinstance(entry, int) and -_WORD // 2 <= entry < _WORD // 2:
        return (_BITS, int(entry) % _WORD)
    return None


def _float(entry: Any) -> tuple[Any, ...] | None:
    number = _tagged(entry, "float")
    if number is None and (isinstance(entry, bool) or not isinstance(entry, (int, float))):
        return None
    (bits,) = struct.unpack("=Q", struct.pack("=d", float(entry if number is None else number)))
    return (_BITS, bits)


def _bool(entry: Any) -> tuple[Any, ...] | None:
    return (_BITS, int(entry)) if isinstance(entry, bool) else None


def _string(entry: Any) -> tuple[Any, ...] | None:
    return (_STRING, entry) if isinstance(entry, str) else None


def _dtype(entry: Any) -> tuple[Any, ...] | None:
    dtype = DTYPES.get(_tagged(entry, "dtype"))
    name = str(dtype).removeprefix("torch.")
    return None if dtype is None else (_CONSTANT, f"aoti_torch_dtype_{name}")


def _layout(entry: Any) -> tuple[Any, ...] | None:
    strided = _tagged(entry, "layout") == "strided"
    return (_CONSTANT, "aoti_torch_layout_strided") if strided else None


def _memory_format(entry: Any) -> tuple[Any, ...] | None:
    name = _tagged(entry, "memory_format")
    return None if name is None else (_CONSTANT, f"aoti_torch_memory_format_{name}")


def _device(entry: Any) -> tuple[Any, ...] | None:
    # The type, 0 for the CPU, stands above the index, -1 for none.
    return (_BITS, 0xFFFFFFFF) if _tagged(entry, "device") == "cpu" else None


_ENCODERS = {
    "Tensor": _tensor,
    "int": _int,
    "float": _float,
    "bool": _bool,
    "str": _string,
    "ScalarType": _dtype,
    "Layout": _layout,
    "MemoryFormat": _memory_format,
    "Device": _device,
}
