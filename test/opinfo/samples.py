# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The entries of `op_db`, and the calls that each stands for."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from opinfo.calls import Call, copies, seed_all, text_of_arguments
from opinfo.variations import varied

DTYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "i64": torch.int64,
    "i32": torch.int32,
    "u8": torch.uint8,
    "bool": torch.bool,
}
# What is done with an op's samples. Those of "errors" are of their own.
KINDS = ("call", "inplace", "out", "errors", "varied")


@dataclass(frozen=True)
class Entry:
    """op: the name with the variant of op_db, such as `linalg.norm.subgradients_at_zero`."""

    op: str
    dtype: str
    kind: str

    def __str__(self) -> str:
        return f"{self.op} {self.dtype} {self.kind}"


@dataclass(frozen=True)
class Choice:
    """Which samples are taken. variations: the share of the varied ones. most: of an entry's calls,
    spread evenly over them; None: all."""

    seed: int = 0
    variations: float = 0.1
    most: int | None = None


@lru_cache
def ops() -> dict[str, OpInfo]:
    return {_name(op): op for op in op_db}


def _name(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def entries(dtypes: list[str], kinds: list[str]) -> list[Entry]:
    """All that op_db has, by dtype, then kind."""
    found = []
    for dtype in dtypes:
        for kind in kinds:
            for name, op in ops().items():
                if op.supports_dtype(DTYPES[dtype], "cpu") and _has(op, dtype, kind):
                    found.append(Entry(name, dtype, kind))
    return found


def _has(op: OpInfo, dtype: str, kind: str) -> bool:
    match kind:
        case "inplace":
            return op.inplace_variant is not None
        case "out":
            return op.supports_out
        case "errors":  # their samples are of one dtype, whatever the entry's is
            return op.error_inputs_func is not None and dtype == "f32"
    return True


def calls_of(entry: Entry, choice: Choice) -> list[Call]:
    """The same ones, in the same order, in every process."""
    op, dtype = ops()[entry.op], DTYPES[entry.dtype]
    seed_all(choice.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if entry.kind == "errors":
            samples = [each.sample_input for each in op.error_inputs("cpu")]
        else:
            samples = list(op.sample_inputs("cpu", dtype, requires_grad=False))
        calls = [_call(op, entry.kind, number, each) for number, each in enumerate(samples)]
        if entry.kind == "out":
            calls = list(_with_out(calls))
    if entry.kind == "varied":
        choose = random.Random(f"{choice.seed} {entry}")
        share = choice.variations
        calls = [each for call in calls for each in varied(entry.op, call, dtype, choose, share)]
    step = 1 if choice.most is None else max(1, -(-len(calls) // choice.most))
    return calls[::step]


def _call(op: OpInfo, kind: str, number: int, sample: SampleInput) -> Call:
    args = (sample.input, *sample.args)
    function = op.inplace_variant if kind == "inplace" else op.op
    label = f"{number}: {text_of_arguments(args, sample.kwargs)}"
    return Call(label, function, args, dict(sample.kwargs))


def _with_out(calls: list[Call]) -> Iterator[Call]:
    """Given tensors of the result's shape, in turn contiguous, with gaps, and of size 0, which
    the op gives another shape."""
    for number, call in enumerate(calls):
        try:
            expected = call.on(copies(call.tensors))
        except Exception:  # noqa: S112  (what PyTorch refuses without out= is judged by "call")
            continue
        form = ("contiguous", "gaps", "size 0")[number % 3]
        if isinstance(expected, torch.Tensor):
            out: Any = _out_like(expected, form)
        elif isinstance(expected, (tuple, list)) and all(
            isinstance(each, torch.Tensor) for each in expected
        ):
            out = tuple(_out_like(each, form) for each in expected)
        else:
            continue
        kwargs = {**call.kwargs, "out": out}
        yield Call(f"{call.label}, out {form}", call.function, call.args, kwargs)


def _out_like(result: torch.Tensor, form: str) -> torch.Tensor:
    if form == "size 0":
        return torch.empty(0, dtype=result.dtype)
    if form == "gaps" and result.dim():
        wide = torch.zeros((*result.shape[:-1], 2 * result.shape[-1]), dtype=result.dtype)
        return wide[..., ::2]
    return torch.zeros(result.shape, dtype=result.dtype)
