# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The systems that Weft's own installation can measure, by name: how each makes a call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from weft import set_num_threads
from weft._build import WEFT_VERSION
from weft.benchmark.case import Case
from weft.benchmark.measure import exported_in_float64, float_leaves, in_float64
from weft.compiled.api import compile, from_exported_program, stats

# One that sets what later ones find, and one that is compared with PyTorch's.
_MOST_CALLS_BEFORE_HIT = 3


@dataclass
class Prepared:
    """call: what is timed. arrays: the floating-point outputs in what it returned.
    settings: what a reader has to know. report: tells more, for `--report`."""

    call: Callable[[], Any]
    settings: str
    arrays: Callable[[Any], list[np.ndarray]] = field(
        default=lambda result: [_array(leaf) for leaf in float_leaves(result)]
    )
    report: Callable[[Any], None] | None = None


def _array(tensor: torch.Tensor) -> np.ndarray:
    """NumPy has no bfloat16."""
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def float64(case: Case, threads: int) -> Prepared:
    """What the errors are measured against."""
    if case.program is not None:
        call = functools.partial(exported_in_float64, case.program, case.args, case.kwargs)
    else:
        call = functools.partial(in_float64, case.module, case.args)
    return Prepared(call, f"torch {torch.__version__}")


def eager(case: Case, threads: int) -> Prepared:
    call = functools.partial(case.module, *case.args, **case.kwargs)
    return Prepared(call, f"torch {torch.__version__}, inference_mode")


def inductor(case: Case, threads: int) -> Prepared:
    return _inductor(case, "default mode")


def inductor_freezing(case: Case, threads: int) -> Prepared:
    return _inductor(case, "freezing", {"freezing": True})


def inductor_autotune(case: Case, threads: int) -> Prepared:
    return _inductor(case, "freezing, max-autotune", {"freezing": True, "max_autotune": True})


def _inductor(case: Case, mode: str, options: dict[str, Any] | None = None) -> Prepared:
    compiled = torch.compile(case.module, fullgraph=True, options=options)
    settings = f"torch {torch.__version__}, fullgraph, {mode}, no_grad"
    return Prepared(functools.partial(compiled, *case.args, **case.kwargs), settings)


def weft(case: Case, threads: int) -> Prepared:
    """Raises: RuntimeError, if PyTorch has to run the call."""
    return _weft(case, threads, "float32")


def weft_bf16(case: Case, threads: int) -> Prepared:
    """Raises: RuntimeError, if PyTorch has to run the call."""
    return _weft(case, threads, "bf16")


def breaks_of_first_calls(compiled: Callable[..., Any], call: Callable[[], Any]) -> list[str]:
    """Makes `call`, one of `compiled`, until a program answers. Why none does, if none does."""
    for _ in range(_MOST_CALLS_BEFORE_HIT):
        call()
        if stats(compiled)["hits"]:
            return []
    return stats(compiled)["breaks"]


def _weft(case: Case, threads: int, precision: str) -> Prepared:
    set_num_threads(threads)
    if case.program is None:
        compiled = compile(case.module, precision=precision)
    else:
        compiled = from_exported_program(case.program, precision=precision)
    call = functools.partial(compiled, *case.args, **case.kwargs)
    breaks = breaks_of_first_calls(compiled, call)
    if breaks:
        raise RuntimeError(f"run by PyTorch: {', '.join(breaks)}")
    settings = f"weft {WEFT_VERSION}, {precision}, inference_mode"
    return Prepared(call, settings, report=compiled.report)


SYSTEMS: dict[str, Callable[[Case, int], Prepared]] = {
    "eager": eager,
    "inductor": inductor,
    "inductor-freezing": inductor_freezing,
    "inductor-autotune": inductor_autotune,
    "weft": weft,
    "weft-bf16": weft_bf16,
}
# What errors are measured against, when it can be had.
REFERENCE = "float64"
# These run under inference_mode, which is as fast as PyTorch gets. The others trace or count
# with PyTorch, which it hinders, and run under no_grad.
IN_INFERENCE_MODE = ("eager", "weft", "weft-bf16")
