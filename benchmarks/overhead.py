# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.overhead [GROUP...]`: what Weft costs beside the program itself.

The least time of a call and of a training step, how long programs take to compile, with an empty
cache and a warm one, how that grows with the layers, and how much memory it takes; each beside its
limit. Every measurement has a process of its own. torch.export's part does not count.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import weft
from weft import _core
from weft.artifacts.builds import Options
from weft.benchmark.case import Case
from weft.capture.given import Given
from weft.capture.signature import describe
from weft.capture.state import snapshot
from weft.compiled.specialize import Specialized, specialize

_TIME_CALL = Path(_core.__file__).parents[2] / "benchmarks/weft-time-call"
_COMPILATIONS, _PROCESSES = 5, 3
# The compiler's stages behind those that see a layer as often as it occurs.
_GENERATION = ("linalg", "loops", "llvm", "object", "link")
_MEBI = 1 << 20


@dataclass(frozen=True)
class Line:
    """One figure: value and limit, if there is one, in `unit`."""

    what: str
    limit: float | None
    value: float
    unit: str


@dataclass(frozen=True)
class Compilation:
    """Of one program in one process, in seconds from the captured graph: until the program was
    `ready`, until its `first_result`, and `again`, the least of a few with empty caches after
    that (none with a warm one), of which `generation` was spent on generating code. peak: bytes
    that the process grew by, at most."""

    ready: float
    first_result: float
    again: float | None
    generation: float | None
    peak: int


# In a process of their own.


def bert(layers: int) -> Case:
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(num_hidden_layers=layers)).eval()
    return Case(f"BERT of {layers} layers", model, (torch.randint(30_522, (1, 128)),))


def resnet50() -> Case:
    from benchmarks.models import resnet50

    return resnet50()


CASES: dict[str, Callable[[], Case]] = {
    "bert": lambda: bert(12),
    "bert-48": lambda: bert(48),
    "resnet50": resnet50,
}


@torch.no_grad()
def compile_case(name: str) -> Compilation:
    """With the cache of WEFT_CACHE_DIR, then a few times with empty ones."""
    case = CASES[name]()
    program = torch.export.export(case.module, case.args)
    gc.collect()  # what the export has left, 0.2 s after ResNet-50's, is none of ours
    resident = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak is that from now on
    start = perf_counter()
    made = _specialize(program, case)
    ready = perf_counter() - start
    done, _ = made.core.call(case.args, {})
    first_result = perf_counter() - start
    if not done:
        raise RuntimeError(f"PyTorch runs {case.title}")
    peak = _status("VmHWM") - resident
    if made.build.cached:
        return Compilation(ready, first_result, None, None, peak)
    anew = list(_compile_anew(program, case))
    again, generation = (min(times) for times in zip(*anew, strict=True))
    return Compilation(ready, first_result, again, generation, peak)


def _specialize(program: torch.export.ExportedProgram, case: Case) -> Specialized:
    given, signature = Given(program), describe(case.args, {})
    references = given.references()
    captured = given.capture(case.args, {}, references, snapshot(references), signature)
    return specialize(captured, signature, Options())


def _compile_anew(
    program: torch.export.ExportedProgram, case: Case
) -> Iterator[tuple[float, float]]:
    """Seconds in all, and of generating code."""
    for _ in range(_COMPILATIONS):
        with tempfile.TemporaryDirectory() as cache:
            os.environ["WEFT_CACHE_DIR"] = cache
            start = perf_counter()
            seconds = _specialize(program, case).build.seconds
            yield perf_counter() - start, sum(seconds[stage] for stage in _GENERATION)


def _status(name: str) -> int:
    """Bytes of this process, by the kernel's name for them."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


@torch.no_grad()
def time_call() -> dict[str, float]:
    """Seconds of a call of `x + 1` on one element: from Python, and from C++."""
    compiled, x = weft.compile(lambda x: x + 1), torch.zeros(1)
    compiled(x)
    calls = 20_000
    python = min(timeit.repeat(lambda: compiled(x), number=calls, repeat=20)) / calls
    artifact = str(compiled.artifact_path)
    done = subprocess.run([_TIME_CALL, artifact], check=True, capture_output=True, text=True)
    return {"python": python, "cpp": float(done.stdout) * 1e-9}


class _Scale(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


def time_training_step() -> dict[str, float]:
    """Seconds of a forward and a backward of `x * scale` on four elements, by PyTorch and compiled,
    in turns on one thread."""
    torch.set_num_threads(1)
    module = _Scale()
    compiled = weft.compile(module)
    x, cotangent, calls = torch.randn(4), torch.ones(4), 500
    for _ in range(2):
        compiled(x)
    ways = {"eager": module, "compiled": compiled}
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(100):
        for name, way in ways.items():
            seconds = timeit.timeit(lambda way=way: way(x).backward(cotangent), number=calls)
            least[name] = min(least[name], seconds / calls)
    return least


# In the parent.


def training_steps() -> Iterator[Line]:
    seconds = _in_process("training-step")
    eager, compiled = seconds["eager"] * 1e6, seconds["compiled"] * 1e6
    yield Line("x * scale on four elements, forward and backward, by PyTorch", None, eager, "µs")
    yield Line("the same compiled: beyond that", 5, compiled - eager, "µs")


def calls() -> Iterator[Line]:
    seconds = _in_process("call")
    yield Line("x + 1 on one element, called from Python", 2, seconds["python"] * 1e6, "µs")
    yield Line("the same, called from C++", 100, seconds["cpp"] * 1e9, "ns")


def compilations() -> Iterator[Line]:
    for name, title, limit in (("bert", "BERT-base", 3), ("resnet50", "ResNet-50", 4)):
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (Compilation(**_in_process(name, cache)) for _ in range(2))
        yield Line(f"{title}, empty cache: to the first result", limit, cold.first_result, "s")
        yield Line(f"{title}, warm cache: until it is ready", 50, warm.ready * 1e3, "ms")
        yield Line(f"{title}: memory that compiling adds", 600, cold.peak / _MEBI, "MiB")


def growth() -> Iterator[Line]:
    """Of the least times of a few processes, which take turns."""
    turns = [
        [Compilation(**_in_process(name)) for name in ("bert", "bert-48")]
        for _ in range(_PROCESSES)
    ]
    few, many = zip(*turns, strict=True)
    for what, limit, part in (
        ("generating code", 1.2, lambda each: each.generation),
        ("compiling in all", None, lambda each: each.again),
    ):
        growth = min(map(part, many)) / min(map(part, few))
        yield Line(f"BERT of 48 layers over one of 12, {what}", limit, growth, "×")


MEASURED: dict[str, Callable[[], dict[str, float]]] = {
    "call": time_call,
    "training-step": time_training_step,
}
GROUPS = {
    "calls": calls,
    "training-steps": training_steps,
    "compilations": compilations,
    "growth": growth,
}


def _in_process(measurement: str, cache: str | None = None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.overhead", "--measure", measurement],
            env={**os.environ, "WEFT_CACHE_DIR": cache or empty},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    return json.loads(done.stdout.splitlines()[-1])


def table(lines: list[Line]) -> Table:
    made = Table("what", "limit", "measured", "", title="Weft's own cost")
    for line in lines:
        missed = line.limit is not None and line.value > line.limit
        limit = "" if line.limit is None else f"{line.limit:.3g} {line.unit}"
        made.add_row(line.what, limit, f"{line.value:.3g} {line.unit}", "missed" if missed else "")
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(": ")[2].partition("\n")[0])
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"among {', '.join(GROUPS)}")
    parser.add_argument("--measure", choices=[*MEASURED, *CASES], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure in MEASURED:
        print(json.dumps(MEASURED[options.measure]()))
    elif options.measure is not None:
        print(json.dumps(asdict(compile_case(options.measure))))
    else:
        if unknown := set(options.groups) - set(GROUPS):
            parser.error(f"expected groups among {', '.join(GROUPS)}, found {sorted(unknown)}")
        lines = [line for group in options.groups or GROUPS for line in GROUPS[group]()]
        Console().print(table(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
