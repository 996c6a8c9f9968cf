# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls artifacts with guarded memory: arguments (read-only), bound tensors, results and the arena
each have a mapping of their own. The ABI is used directly, in a forked child."""

from __future__ import annotations

import ctypes
import faulthandler
import json
import mmap
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from guarded_memory import Guarded
from torch.utils import _pytree as pytree

from weft.artifacts import builds
from weft.frontend import lower
from weft.frontend.dtypes import DTYPES
from weft.frontend.lowered import Lowered

ARENA_ALIGNMENT = 64

# --- runtime/Abi.h ---


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("sizes", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        *((name, ctypes.c_int32) for name in ("rank", "dtype", "device_type", "device_id")),
    ]


class _Context(ctypes.Structure):
    pass


_Barrier = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)
_Mark = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)
_Context._fields_ = [
    ("struct_size", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("tensors", ctypes.c_void_p),
    ("arena", ctypes.c_void_p),
    ("barrier", _Barrier),
    ("fallback", ctypes.c_void_p),
    ("mark", _Mark),
    ("status", ctypes.c_int32),
    ("stage", ctypes.c_int32),
    ("host", ctypes.c_void_p),
]
_EntryFunction = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.POINTER(_Context), ctypes.c_int32, ctypes.c_int32
)


class _Entry(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", _EntryFunction),
        ("arena_bytes", ctypes.c_uint64),
        ("max_threads", ctypes.c_int32),
        ("num_tensors", ctypes.c_int32),
        ("first_stage", ctypes.c_int32),
        ("end_stage", ctypes.c_int32),
    ]


class _Artifact(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("magic", "version", "struct_size", "num_entries")),
        ("entries", ctypes.POINTER(_Entry)),
        ("manifest", ctypes.c_char_p),
        ("manifest_size", ctypes.c_uint64),
    ]


# --- programs ---


@dataclass
class Call:
    """A function of tensors. label: the name that failures give."""

    label: str
    function: Callable[..., Any]
    args: Sequence[torch.Tensor]


class Bundle(torch.nn.Module):
    """Several calls as one program, since capturing costs more than compiling."""

    def __init__(self, calls: Sequence[Call]) -> None:
        super().__init__()
        self.calls = list(calls)
        modules = [call.function for call in calls if isinstance(call.function, torch.nn.Module)]
        self.modules_of_calls = torch.nn.ModuleList(modules)

    def forward(self, *args: torch.Tensor) -> list[list[torch.Tensor]]:
        given, results = iter(args), []
        for call in self.calls:
            results.append(pytree.tree_leaves(call.function(*(next(given) for _ in call.args))))
        return results


@dataclass
class Program:
    """An artifact, its inputs, and eager's results, if they are compared."""

    path: str
    manifest: dict[str, Any]
    arguments: list[torch.Tensor]
    expected: list[torch.Tensor]
    labels: list[str]
    keep: Any = field(repr=False, default=None)


@dataclass
class Graph:
    """Calls as one graph, with the graph's inputs. expected, labels: of its results."""

    lowered: Lowered
    arguments: list[torch.Tensor]
    expected: list[torch.Tensor]
    labels: list[str]


def graph_of(calls: Sequence[Call]) -> Graph:
    """The graph of a program that makes these calls, and eager's results."""
    bundle = Bundle(calls).eval()
    args = [arg for call in calls for arg in call.args]
    with torch.no_grad():
        expected = bundle(*args)
        exported = torch.export.export(bundle, tuple(args), strict=False)
        lowered = lower(exported)
    state = {**exported.state_dict, **exported.constants}
    arguments = []
    for source in lowered.inputs:
        match source.kind:
            case "user":
                arguments.append(args[source.index])
            case "constant":
                arguments.append(source.tensor)
            case _:
                arguments.append(state[source.name])
    leaves = [leaf for results in expected for leaf in results]
    names = [call.label for call, results in zip(calls, expected) for _ in results]
    wanted: dict[int, torch.Tensor] = {}
    labels: dict[int, str] = {}
    for target in lowered.outputs:
        if target.kind == "user" and target.result is not None:
            wanted[target.result], labels[target.result] = leaves[target.index], names[target.index]
    order = range(len(wanted))
    return Graph(
        lowered,
        [argument.detach() for argument in arguments],
        [wanted[i] for i in order],
        [labels[i] for i in order],
    )


def manifest_of(build: builds.Build) -> dict[str, Any]:
    return json.loads(build.artifact.manifest)


def program_of(
    build: builds.Build,
    arguments: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor] = (),
    labels: Sequence[str] = (),
) -> Program:
    """What was built, to be called with these arguments. labels: of the first results."""
    manifest = manifest_of(build)
    count = len(manifest["entries"]["main"]["results"])
    named = [*labels, *(f"result {i}" for i in range(len(labels), count))]
    path = str(build.artifact.path)
    return Program(path, manifest, [*arguments], [*expected], named[:count], build)


def compile_calls(
    calls: Sequence[Call], isa: str, threads: int, native: bool = True
) -> Program | None:
    """Compiles the calls. If an op is left to PyTorch, raises AssertionError if `native`, else
    gives None."""
    graph = graph_of(calls)
    lowered = graph.lowered
    assert not (native and lowered.fallbacks), lowered.fallbacks
    build = builds.build(lowered.graph, builds.Options(isa=isa, threads=threads))
    if lowered.fallbacks:
        return None
    return program_of(build, graph.arguments, graph.expected, graph.labels)


# --- runs ---


@dataclass
class _Memory:
    """All memory that one run of a program uses; `progress` counts the kernels that have
    finished."""

    arguments: list[Guarded]
    bound: list[Guarded]
    results: list[Guarded]
    arenas: dict[str, Guarded]
    progress: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 8))

    def all(self) -> list[Guarded]:
        return [*self.arguments, *self.bound, *self.results, *self.arenas.values()]


def run(program: Program, side: str, threads: int) -> list[torch.Tensor]:
    """The results of one call in a child process.

    Raises: AssertionError, naming the kernel that crashed, or the buffer next to which memory has
    changed.
    """
    library = ctypes.CDLL(program.path)
    artifact = _Artifact.in_dll(library, "weft_artifact")
    listed = [artifact.entries[i] for i in range(artifact.num_entries)]
    entries = {entry.name.decode(): entry for entry in listed}
    memory = _lay_out(program, entries, side)
    pid = os.fork()
    if pid == 0:
        faulthandler.disable()
        status = 99
        try:
            status = _call_entries(program, entries, memory, threads)
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    assert status == 0, _obituary(program, memory, status, side)
    for buffer in memory.all():
        damage = buffer.damage()
        assert damage is None, f"{side}: {damage}"
    return _results(program, memory)


def _results(program: Program, memory: _Memory) -> list[torch.Tensor]:
    """The results, without those that are in the memory of other tensors, which are not written."""
    results: list[torch.Tensor] = []
    for buffer, spec in zip(memory.results, program.manifest["entries"]["main"]["results"]):
        alias = spec.get("alias") or {}
        if "argument" in alias:
            results.append(program.arguments[alias["argument"]])
        elif "result" in alias:
            results.append(results[alias["result"]])
        else:
            results.append(buffer.tensor(spec).clone())
    return results


def _lay_out(program: Program, entries: dict[str, _Entry], side: str) -> _Memory:
    main = program.manifest["entries"]["main"]

    def buffers(specs: list[dict], labels: Sequence[str]) -> list[Guarded]:
        return [
            Guarded(label, _bytes_of(spec), side) for label, spec in zip(labels, specs, strict=True)
        ]

    names = [f"argument {spec['name']}" for spec in main["arguments"]]
    arguments = buffers(main["arguments"], names)
    for buffer, spec, value in zip(arguments, main["arguments"], program.arguments, strict=True):
        buffer.tensor(spec).copy_(value)
        buffer.seal()
    bound = buffers(main["bound"], [f"bound tensor {i}" for i in range(len(main["bound"]))])
    for buffer in bound:
        buffer.clear()
    results = buffers(main["results"], program.labels)
    arenas = {}
    for name, entry in entries.items():
        arenas[name] = Guarded(f"arena of {name}", entry.arena_bytes, side, ARENA_ALIGNMENT)
        arenas[name].clear()
    return _Memory(arguments, bound, results, arenas)


def _bytes_of(spec: dict[str, Any]) -> int:
    size = DTYPES[spec["dtype"]].itemsize
    for extent in spec["shape"]:
        size *= extent
    return size


def _call_entries(
    program: Program, entries: dict[str, _Entry], memory: _Memory, threads: int
) -> int:
    main = program.manifest["entries"]["main"]
    if bind := program.manifest["entries"].get("bind"):
        places = {spec["name"]: buffer for spec, buffer in zip(main["arguments"], memory.arguments)}
        given = [places[spec["name"]] for spec in bind["arguments"]]
        _call(entries["bind"], [*given, *memory.bound], memory.arenas["bind"], memory, threads)
    memory.progress[:8] = bytes(8)
    tensors = [*memory.arguments, *memory.bound, *memory.results]
    # Two calls are made: the second one finds what the first has left in the arena.
    for _ in range(2):
        _call(entries["main"], tensors, memory.arenas["main"], memory, threads)
    return 0


def _call(
    entry: _Entry, buffers: list[Guarded], arena: Guarded, memory: _Memory, threads: int
) -> None:
    table = (_Tensor * max(1, len(buffers)))()
    for tensor, buffer in zip(table, buffers):
        tensor.data, tensor.device_type = buffer.address, 1
    threads = min(threads, entry.max_threads)
    team = threading.Barrier(threads)

    def mark(_context: int, index: int) -> None:
        memory.progress[:8] = (index + 1).to_bytes(8, "little")

    context = _Context(
        struct_size=ctypes.sizeof(_Context),
        tensors=ctypes.addressof(table),
        arena=arena.address,
        barrier=_Barrier(lambda _context, _thread: team.wait() and None),
        mark=_Mark(mark),
    )
    statuses: list[int] = []

    def work(thread: int) -> None:
        statuses.append(entry.function(ctypes.byref(context), thread, threads))

    others = [threading.Thread(target=work, args=(i,)) for i in range(1, threads)]
    for other in others:
        other.start()
    work(0)
    for other in others:
        other.join()
    assert not any(statuses), statuses


def _obituary(program: Program, memory: _Memory, status: int, side: str) -> str:
    calls = program.manifest["entries"]["main"]["calls"]
    ended = int.from_bytes(memory.progress[:8], "little")
    name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else str(status)
    where = calls[ended] if ended < len(calls) else {"kernel": "behind the last"}
    return f"{side}: {name} in {where.get('kernel')} ({where.get('schedule')}), {program.path}"
