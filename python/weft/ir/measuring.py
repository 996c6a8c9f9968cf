# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time that ops take: of the kernel that each becomes part of, measured."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import torch

from weft.ir.module import Module
from weft.ir.running import loaded
from weft.ir.values import Operation

# A file that no user has: its lines are the numbers of ops, from 1.
_FILE = "weft.op"
REPEATS = 5


def seconds_of(
    module: Module, inputs: Sequence[torch.Tensor] | None = None
) -> dict[Operation, tuple[float, int]]:
    """The median seconds of the kernel that ends with an op of `main`, and how many ops are part
    of it, for each kernel that does.

    inputs: of `main`, in order, those that the module was captured with left out; by default
    random ones, and zeros for whole numbers.
    Raises: errors.CompileError; what a call raises.
    """
    ops = list(module["main"].body)
    program, complete = loaded(_numbered(module), {})
    arguments = complete(list(inputs) if inputs is not None else _random(module))
    calls = program.manifest["entries"]["main"]["calls"]
    with torch.no_grad():
        runs = [program.time(*arguments) for _ in range(REPEATS)]
    found: dict[Operation, tuple[float, int]] = {}
    for number, call in enumerate(calls):
        parts = sorted({line for file, line, *_ in call["locs"] if file == _FILE})
        if parts:
            last = ops[parts[-1] - 1]
            seconds = statistics.median(run[number] for run in runs)
            before, count = found.get(last, (0.0, 0))
            found[last] = (before + seconds, count + len(parts))
    return found


def _numbered(module: Module) -> Module:
    """The module with each op of `main` at the line of its number."""
    copy = module.clone()
    session = copy._session
    for number, op in enumerate(copy["main"].body, start=1):
        session.set_line(op._handle, (_FILE, number, ""))
    return copy


def _random(module: Module) -> list[torch.Tensor]:
    params = module["main"].params
    given = params[: len(params) - len(module.tensors)]
    generator = torch.Generator().manual_seed(0)
    made = []
    for value in given:
        dtype, shape = value.type.torch_dtype, value.type.shape
        if dtype.is_floating_point:
            made.append(torch.randn(shape, generator=generator).to(dtype))
        else:
            made.append(torch.zeros(shape, dtype=dtype))
    return made
