# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process in which candidates are compiled, checked and timed: `python -m weft.tune.worker`.

Requests and answers are lines of JSON. A request has `module` and `incumbent` (MLIR of the stage
`linalg`), `reference` (of loops as the formula has them), `inputs` and `results` ([shape, dtype]
each), `rounds` and `threads`; `schedules` of some of the modules and `isa`, as the compiler's
options; `weights`, numbers of inputs that come from memory at each call. The answer: `outcome`,
`seconds` (the least time of a call), `ratio` (of it to the incumbent's), `note`. Nothing is kept
between requests.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch

from weft import _core, errors
from weft.artifacts import builds

_PR_SET_PDEATHSIG = 1
_SECONDS = 6e-3  # of a round, for each of the two
_SETTLED, _LONGEST, _LESS = 3, 6, 0.01  # rounds, times as many rounds, share
_MORE_THAN_CACHES, _MOST_COPIES = 96 << 20, 48

# Of the largest value: sums in another order differ by rounding, which grows with their length.
_TOLERANCES = {
    torch.float64: 1e-9,
    torch.float32: 1e-3,
    torch.bfloat16: 3e-2,
    torch.float16: 1e-2,
}


def main() -> None:
    """The one argument: the process that asks, with which this one ends, whatever it is at."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        return
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    torch.set_num_threads(request["threads"])
    try:
        return _measured(request)
    except errors.Error as error:
        return {"outcome": "failed", "note": str(error).partition("\n")[0]}


def _measured(request: dict[str, Any]) -> dict[str, Any]:
    inputs = [_values(shape, dtype) for shape, dtype in request["inputs"]]
    candidate, incumbent, reference = (
        _program(request, name) for name in ("module", "incumbent", "reference")
    )
    expected, found, spare = ([_empty(each) for each in request["results"]] for _ in range(3))
    reference.run(inputs, expected, None)
    candidate.run(inputs, found, None)
    if note := _difference(found, expected, _tolerance(inputs + expected)):
        return {"outcome": "wrong", "note": note}
    sets = _rotated(inputs, request.get("weights", ()))
    mine, theirs = _compared(candidate, incumbent, sets, spare, request["rounds"])
    return {"outcome": "right", "note": "", "seconds": mine, "ratio": mine / theirs}


def _compared(
    candidate: _core.Program,
    incumbent: _core.Program,
    sets: list[list[torch.Tensor]],
    results: list[torch.Tensor],
    rounds: int,
) -> tuple[float, float]:
    """The least seconds of a call of each, in turns, so that what disturbs one disturbs the other:
    of so many rounds, and of more until the last ones have found nothing less."""
    least, settled, done = [float("inf")] * 2, 0, 0
    while done < rounds or (settled < _SETTLED and done < _LONGEST * rounds):
        settled += 1
        for number, program in enumerate((candidate, incumbent)):
            seconds = _timed(program, sets, results)
            if seconds < (1 - _LESS) * least[number]:
                settled = 0
            least[number] = min(least[number], seconds)
        done += 1
    return least[0], least[1]


def _rotated(inputs: list[torch.Tensor], weights: Sequence[int]) -> list[list[torch.Tensor]]:
    """Inputs of so many calls that weights are not in the cache when their turn comes again."""
    size = sum(inputs[number].nbytes for number in weights)
    copies = min(_MOST_COPIES, -(-_MORE_THAN_CACHES // size)) if size else 1
    sets = [list(inputs)]
    for _ in range(copies - 1):
        changed = list(inputs)
        for number in weights:
            changed[number] = inputs[number].clone()
        sets.append(changed)
    return sets


def _program(request: dict[str, Any], name: str) -> _core.Program:
    schedule = request.get("schedules", {}).get(name, "")
    options = builds.Options(isa=request.get("isa", "native"), schedule=schedule)
    return _core.Program(builds.build_module(request[name], "linalg", options).artifact)


def _values(shape: list[int], dtype: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        return torch.randn(shape, generator=generator).to(kind)
    # Small, so that they are indices as well.
    return torch.randint(0, 2, shape, generator=generator).to(kind)


def _empty(spec: list[Any]) -> torch.Tensor:
    return torch.zeros(spec[0], dtype=getattr(torch, spec[1]))


def _tolerance(tensors: list[torch.Tensor]) -> float:
    """The tolerance for the least precise of the floats."""
    return max((_TOLERANCES.get(each.dtype, 0.0) for each in tensors), default=0.0)


def _difference(found: list[torch.Tensor], expected: list[torch.Tensor], of_floats: float) -> str:
    """What is wrong, or nothing."""
    for number, (mine, right) in enumerate(zip(found, expected)):
        tolerance = of_floats if right.dtype.is_floating_point else 0.0
        finite = right[right.isfinite()].abs() if right.dtype.is_floating_point else right
        scale = float(finite.max()) if finite.numel() and tolerance else 1.0
        if not torch.allclose(mine, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            worst = (mine.double() - right.double()).abs().max().item()
            return f"result {number} differs from the reference by up to {worst:.3g}"
    return ""


def _timed(
    program: _core.Program, sets: list[list[torch.Tensor]], results: list[torch.Tensor]
) -> float:
    """The least seconds of a call, of those that some milliseconds are enough for."""
    least, end = float("inf"), time.perf_counter() + _SECONDS
    for inputs in itertools.chain(sets, itertools.cycle(sets)):
        start = time.perf_counter()
        program.run(inputs, results, None)
        now = time.perf_counter()
        least = min(least, now - start)
        if now > end:
            break
    return least


if __name__ == "__main__":
    main()
