# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process in which candidates are compiled, checked and timed: `python -m weft.tune.worker`.

Requests and answers are lines of JSON. A request has `module` and `incumbent` (MLIR of the stage
`linalg`), `reference` (of loops as the formula has them), `inputs` and `results` ([shape, dtype]
each), `rounds` and `threads`. The answer: `outcome`, `seconds` and `incumbent_seconds` (best time
of a call), `note`. Nothing is kept between requests.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch

from weft import _core, errors
from weft.artifacts import builds

# Of the largest value: sums in another order differ by rounding, which grows with their length.
_TOLERANCES = {
    torch.float64: 1e-9,
    torch.float32: 1e-3,
    torch.bfloat16: 3e-2,
    torch.float16: 1e-2,
}


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    torch.set_num_threads(request["threads"])
    try:
        return _measured(request)
    except errors.Error as error:
        return {"outcome": "failed", "note": str(error)}


def _measured(request: dict[str, Any]) -> dict[str, Any]:
    inputs = [_values(shape, dtype) for shape, dtype in request["inputs"]]
    candidate, incumbent, reference = (
        _core.Program(builds.build_module(request[name], "linalg", builds.Options()).artifact)
        for name in ("module", "incumbent", "reference")
    )
    expected, found, spare = ([_empty(each) for each in request["results"]] for _ in range(3))
    reference.run(inputs, expected, None)
    candidate.run(inputs, found, None)
    if note := _difference(found, expected):
        return {"outcome": "wrong", "note": note}
    times: dict[str, float] = {}
    for _ in range(request["rounds"]):
        # In turns, so that what disturbs one disturbs the other.
        for name, program in (("seconds", candidate), ("incumbent_seconds", incumbent)):
            seconds = _timed(program, inputs, spare)
            times[name] = min(times.get(name, seconds), seconds)
    return {"outcome": "right", "note": "", **times}


def _values(shape: list[int], dtype: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        return torch.randn(shape, generator=generator).to(kind)
    # Small, so that they are indices as well.
    return torch.randint(0, 2, shape, generator=generator).to(kind)


def _empty(spec: list[Any]) -> torch.Tensor:
    return torch.zeros(spec[0], dtype=getattr(torch, spec[1]))


def _difference(found: list[torch.Tensor], expected: list[torch.Tensor]) -> str:
    """What is wrong, or nothing."""
    for number, (mine, right) in enumerate(zip(found, expected)):
        tolerance = _TOLERANCES.get(right.dtype, 0.0)
        finite = right[right.isfinite()].abs() if right.dtype.is_floating_point else right
        scale = float(finite.max()) if finite.numel() and tolerance else 1.0
        if not torch.allclose(mine, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            worst = (mine.double() - right.double()).abs().max().item()
            return f"result {number} differs from the reference by up to {worst:.3g}"
    return ""


def _timed(
    program: _core.Program, inputs: list[torch.Tensor], results: list[torch.Tensor]
) -> float:
    """Seconds of one call, of some that take about a millisecond."""
    start = time.perf_counter()
    program.run(inputs, results, None)
    once = time.perf_counter() - start
    calls = max(1, min(100, int(1e-3 / max(once, 1e-9))))
    start = time.perf_counter()
    for _ in range(calls):
        program.run(inputs, results, None)
    return min(once, (time.perf_counter() - start) / calls)


if __name__ == "__main__":
    main()
