# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What this machine does at most, in float32 operations and bytes a second; and the core that cost
models assume, which is data: what they choose must not depend on a measurement's noise.

Rates are measured when they are first asked for and kept in the cache's folder, by the model of the
processor, the processors of this process, and the number of threads. WEFT_MACHINE names a JSON file
of some rates that hold instead, for every number of threads: `{"memory_bandwidth": 2e10}`. No code
depends on them, so they are in no program's key: reports and predictions compare with them.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

from weft import _core, cache, errors

Rate = Literal["flops", "matrix_flops", "l2_bandwidth", "l3_bandwidth", "memory_bandwidth"]
RATES: tuple[Rate, ...] = get_args(Rate)


@dataclass(frozen=True)
class Core:
    """One core and its share of the caches. latency: cycles from an addition to the next one that
    needs it. vector_operations: a cycle, and as many loads. cache_bytes: of L1, L2 and L3.
    cycle_bytes: a cycle, from L2, L3 and memory."""

    latency: float
    vector_operations: float
    cache_bytes: tuple[int, int, int]
    cycle_bytes: tuple[float, float, float]


# Round numbers near those of server cores: they rank schedules, and claim nothing of this machine.
# What the schedules are worth: `python -m benchmarks.tensor_expressions`.
ASSUMED_CORE = Core(4.0, 2.0, (32 << 10, 512 << 10, 8 << 20), (48.0, 20.0, 8.0))

_FORMAT = 1  # of the file; a change in how a rate is measured is a new one

_MEASURE: dict[Rate, Callable[[int], float]] = {
    "flops": _core.measure_peak_flops,
    "matrix_flops": _core.measure_matrix_flops,
    "l2_bandwidth": lambda threads: _core.measure_cache_bandwidth(threads, 2),
    "l3_bandwidth": lambda threads: _core.measure_cache_bandwidth(threads, 3),
    "memory_bandwidth": _core.measure_peak_bandwidth,
}


def rate(name: Rate, threads: int) -> float:
    """Of `threads` threads at once. flops: of float32, a multiply-add is two. matrix_flops: of
    bfloat16 on AMX, 0 without it. The bandwidths: bytes read from where they are named for.

    Raises: ConfigError for a WEFT_MACHINE that cannot be read.
    """
    given = _given(os.environ.get("WEFT_MACHINE", ""))
    return given[name] if name in given else _kept(name, threads, str(cache.path()))


@lru_cache
def frequency() -> float:
    """Cycles a second, as the system reports them now; 3e9 where it does not."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        found = re.search(r"cpu MHz\s*:\s*([\d.]+)", lines.read())
    return float(found[1]) * 1e6 if found else 3e9


@lru_cache
def _given(place: str) -> dict[str, float]:
    if not place:
        return {}
    try:
        found = json.loads(Path(place).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise errors.ConfigError(f"expected WEFT_MACHINE to name a JSON file: {error}") from error
    wrong = not isinstance(found, dict) or any(
        name not in RATES or not isinstance(value, (int, float)) or value <= 0
        for name, value in found.items()
    )
    if wrong:
        raise errors.ConfigError(
            f"expected WEFT_MACHINE to give positive numbers for some of {', '.join(RATES)}; "
            f"found {found!r}"
        )
    return {name: float(value) for name, value in found.items()}


@lru_cache
def _kept(name: Rate, threads: int, folder: str) -> float:
    """The rate from the file, or measured and added to it."""
    file = Path(folder) / "machine.json"
    key = f"{_processor()}, {len(os.sched_getaffinity(0))} processors, {threads} threads"
    found = _read(file)
    value = found.get(key, {}).get(name)
    if value is None:
        value = _MEASURE[name](threads)
        found = _read(file)  # what another process has added in the meantime stays
        found.setdefault(key, {})[name] = value
        _write(file, found)
    return value


@lru_cache
def _processor() -> str:
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        found = re.search(r"model name\s*:\s*(.+)", lines.read())
    return found[1].strip() if found else "unknown processor"


def _read(file: Path) -> dict[str, dict[str, float]]:
    """Nothing if the file is missing, damaged or of another format: it only saves time."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        machines: dict[str, dict[str, float]] = found["machines"]
        if found["format"] == _FORMAT and all(isinstance(each, dict) for each in machines.values()):
            return machines
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return {}


def _write(file: Path, machines: dict[str, dict[str, float]]) -> None:
    """In one step. A folder that may not be written to costs only another measurement."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=file.parent, prefix=".machine-")
        with os.fdopen(handle, "w", encoding="utf-8") as lines:
            json.dump({"format": _FORMAT, "machines": machines}, lines, indent=1)
        os.replace(draft, file)
