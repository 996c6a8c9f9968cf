# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts on demand: from the cache, or from the compiler, which is loaded only then."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from weft import _core, errors
from weft._build import LLVM_VERSION, WEFT_VERSION
from weft.frontend.graph import without_locations


def most_threads() -> int:
    """How many a program may come to run on, as settings change between calls."""
    return max(_core.get_num_threads(), len(os.sched_getaffinity(0)))


class GraphPasses(Protocol):
    """Passes of a user over the graph, ahead of the compiler's."""

    def changed(self, graph: bytes, level: int) -> tuple[bytes, bytes]:
        """What those up to a level make of a graph in JSON: its IR with the users' lines, and
        without them."""
        ...

    def fingerprints(self) -> list[str]:
        """Equal for passes that do the same."""
        ...


class MeasuredSchedules(Protocol):
    """What tuning has found, for the kernels that it has measured."""

    def chosen(self, graph: bytes, options: Options) -> tuple[Options, tuple[str, ...]]:
        """The options with the schedules of these kernels, and the names of the others."""
        ...

    def note(self, calls: Sequence[dict[str, Any]], others: Sequence[str]) -> str:
        """What a report is to say of the others. calls: of the manifest."""
        ...


@dataclass(frozen=True)
class Options:
    """isa: "native", "avx2", "avx512" or "amx"; threads: the most that a program
    has scratch memory for.
    schedule: numbers of contractions' schedules that are fixed, such as
    "rows=6,groups=4,chunk=768,panels=2"; of one kernel, "dot_general_0:rows=4"; sections are
    separated by semicolons.
    records: fix those of the kernels that they have.
    precision: of the operands of float32 contractions, "float32" or "bf16".
    role: of training, "forward", "backward" or "step", or nothing; "backward of forward" where the
    forward, a program of its own, is trained in turn; "segment 1 by 0,1,1" where the gradients come
    in segments, for one of them and by that of each gradient. wrt, differentiated: numbers,
    separated by commas, of the inputs whose gradients are wanted and of the outputs that have
    cotangents; of each derivative, separated by semicolons.
    memory_budget: share of the bytes that training would save which it may, none if negative.
    passes: change the graph ahead of the compiler's.
    level: of optimisation, 0 to 3.
    without: names of passes that are left out, separated by commas."""

    isa: str = "native"
    threads: int = field(default_factory=most_threads)
    schedule: str = ""
    precision: str = "float32"
    role: str = ""
    wrt: str = ""
    differentiated: str = ""
    memory_budget: float = -1.0
    passes: GraphPasses | None = None
    level: int = 3
    without: str = ""
    records: MeasuredSchedules | None = None

    @property
    def rolls_loops(self) -> bool:
        return "weft-roll-loops" not in self.without.split(",")

    def for_compiler(self) -> dict[str, Any]:
        """What the compiler is told; the passes have been run and the records read by then."""
        here = ("passes", "records")
        return {
            each.name: getattr(self, each.name) for each in fields(self) if each.name not in here
        }


@dataclass
class Build:
    """artifact: loaded. cached: found, not compiled. seconds: of the compiler's stages.
    note: what a report is to say of it."""

    artifact: _core.Artifact
    key: str
    cached: bool
    graph: bytes
    options: Options
    seconds: dict[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def path(self) -> Path | None:
        """Where the artifact lies in the cache, None of one that is not kept."""
        path = Path(self.artifact.path)
        return path if path.parent == _core.Cache.default_folder() else None


def build(graph: bytes, options: Options) -> Build:
    """The artifact of a graph in JSON, changed by the passes of the options.

    Trouble with the cache warns and costs a compilation, nothing else.
    Raises: errors.CompileError; what the passes and the records raise.
    """
    identity = without_locations(graph)
    if options.passes is not None:
        graph, identity = options.passes.changed(graph, options.level)
    if options.records is None:
        return _found_or_made(graph, options, cache_key(identity, options), _compile_graph)
    chosen, others = options.records.chosen(graph, options)
    built = _found_or_made(graph, chosen, cache_key(identity, chosen), _compile_graph)
    calls = json.loads(built.artifact.manifest)["entries"]["main"]["calls"]
    return replace(built, options=options, note=options.records.note(calls, others))


def build_module(text: str, stage: str, options: Options) -> Build:
    """The artifact of a module at a stage of the compiler, as MLIR's text.

    Raises: errors.CompileError; errors.ParseError.
    """
    source = text.encode()
    key = cache_key(f"{stage}\n".encode() + source, options)

    def compile_module(source: bytes, path: str, told: dict[str, Any]) -> str:
        from weft import _compiler

        _compiler.Session.parse(text, "te").compile(stage, path, told)
        return "{}"

    return _found_or_made(source, options, key, compile_module)


# Writes the artifact of a source to a path, for options; gives the compiler's statistics.
_Compiling = Callable[[bytes, str, dict[str, Any]], str]


def _compile_graph(graph: bytes, path: str, told: dict[str, Any]) -> str:
    from weft import _compiler

    return _compiler.compile(graph, path, told)


def _found_or_made(graph: bytes, options: Options, key: str, compiling: _Compiling) -> Build:
    cache = _core.Cache(_core.Cache.default_folder())
    path, warning = cache.lookup(key)
    _warn(warning)
    # Only the compiler leaves what WEFT_DUMP asks for.
    if path is not None and not os.environ.get("WEFT_DUMP"):
        try:
            return Build(_core.Artifact.load(path), key, True, graph, options)
        except errors.ArtifactError as error:
            _warn(f"{error}; compiling it anew")
    return _compile(graph, options, key, cache, compiling)


def _compile(
    graph: bytes, options: Options, key: str, cache: _core.Cache, compiling: _Compiling
) -> Build:
    draft, warning = cache.begin(key)
    _warn(warning)
    start = time.perf_counter()
    from weft import _compiler

    seconds = {"load compiler": time.perf_counter() - start}
    try:
        try:
            statistics = compiling(graph, str(draft.path), options.for_compiler())
        except _compiler.OutputError as full:
            _warn(f"the artifact cache is full ({full}): compiled programs will not be kept")
            draft, statistics = _compile_privately(graph, options, key, cache, compiling)
    except (_compiler.CompileError, _compiler.OutputError) as error:
        raise errors.CompileError(str(error)) from None
    seconds.update(json.loads(statistics).get("seconds", {}))
    path, draft, warning = cache.publish(draft)
    _warn(warning)
    try:
        artifact = _core.Artifact.load(path)
    except errors.ArtifactError:
        if Path(path).exists():
            raise
        # Another process has emptied the cache meanwhile.
        draft, _ = _compile_privately(graph, options, key, cache, compiling)
        path, draft, warning = cache.publish(draft)
        artifact = _core.Artifact.load(path)
    return Build(artifact, key, False, graph, options, seconds)


def _compile_privately(
    graph: bytes, options: Options, key: str, cache: _core.Cache, compiling: _Compiling
) -> tuple[Any, str]:
    """A draft beside the cache, and the compiler's statistics."""
    draft = cache.begin_private(key)
    return draft, compiling(graph, str(draft.path), options.for_compiler())


def lower_to(graph: bytes, stage: str, options: Options) -> str:
    """The IR of a graph at a stage, as text.

    Raises: errors.CompileError.
    """
    from weft import _compiler

    try:
        return _compiler.lower(graph, stage, options.for_compiler())
    except _compiler.CompileError as error:
        raise errors.CompileError(str(error)) from None


def optional_passes() -> list[str]:
    """The compiler's passes that `Options.without` may name."""
    from weft import _compiler

    return _compiler.optional_passes()


def cache_key(graph: bytes, options: Options) -> str:
    """graph: without source locations."""
    # The compiler heeds these too.
    settings = {name: os.environ.get(name, "") for name in ("WEFT_CPU_CACHES", "WEFT_ISA")}
    facts = [
        WEFT_VERSION,
        LLVM_VERSION,
        _compiler_identity(),
        cpu_flags(),
        caches(),
        settings,
        options.for_compiler(),
        [] if options.passes is None else options.passes.fingerprints(),
    ]
    key = hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=20)
    key.update(graph)
    return key.hexdigest()


@lru_cache
def _compiler_identity() -> list[Any]:
    """Tells builds of the compiler apart without loading it."""
    spec = importlib.util.find_spec("weft._compiler")
    if spec is None or spec.origin is None:
        return []
    status = os.stat(spec.origin)
    return [status.st_size, status.st_mtime_ns]


@lru_cache
def cpu_flags() -> str:
    """The features that the operating system reports for the first processor."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        for line in lines:
            if line.startswith("flags"):
                return " ".join(sorted(line.partition(":")[2].split()))
    return ""


@lru_cache
def caches() -> list[list[str]]:
    """The caches of the processors that this process may run on, each with who shares it."""
    folder = Path("/sys/devices/system/cpu")
    facts = ("level", "type", "size", "shared_cpu_list")
    found = []
    for cpu in sorted(os.sched_getaffinity(0)):
        for cache in sorted((folder / f"cpu{cpu}" / "cache").glob("index*")):
            with contextlib.suppress(OSError):  # containers hide some
                found.append([str(cpu), *((cache / fact).read_text().strip() for fact in facts)])
    return found


def _warn(message: str) -> None:
    if message:
        warnings.warn(message, errors.WeftWarning, stacklevel=3)
