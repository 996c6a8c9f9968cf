# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traces that another process has made, in the folder of compiled programs.

A trace is a function of the state that the program depends on and of the call: what tracing.py is
given. Where all of that can be named in a way that holds in every process (descriptions.py), what
came back from the child that traced is kept under the digest of these names, and a later process
neither traces nor loads what traces. The program is then found in the folder as well, with the
record that it was compared with eager execution.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch._library import custom_ops

from weft import cache, config
from weft.capture.argument_objects import NO_COUNTERS
from weft.capture.descriptions import Description, Unknown
from weft.capture.isolated import Reply
from weft.capture.reachability import is_library_module, is_stable
from weft.frontend.numbers import NO_NUMBERS

if TYPE_CHECKING:
    from weft.capture.snapshots import Snapshot
    from weft.capture.trace import Trace, Traced

# Namespaces of operators that torch defines in Python, some of them late.
_OF_TORCH = frozenset(
    (
        *("_c10d_functional", "_dtensor", "_inductor_test", "_native", "c10d_functional", "export"),
        *("debug_mode_ops", "debugprims", "flex_lib", "fsdp", "inductor", "onnx", "onnx_symbolic"),
        *("prims", "rngprims", "streams", "symm_mem"),
    )
)
# More is not kept: constants that a program computes.
_MOST_BYTES = 64 << 20
_DIGEST_BYTES = 20
_OF_LIBRARIES = ("ATEN_", "HF_", "KMP_", "MKL_", "OMP_", "PYTORCH_", "TORCH_", "TORCHINDUCTOR_")


class KeptTrace:
    """The trace of one call, on disk."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._reply: Reply | None = None  # the latest of the children that traced it

    def note(self, reply: Reply) -> None:
        self._reply = reply

    @staticmethod
    def of(trace: Trace, state: Snapshot) -> KeptTrace | None:
        """None for a trace that holds in this process alone."""
        plain = trace.counters == NO_COUNTERS and trace.numbers == NO_NUMBERS and not trace.drafts
        if not plain or state.reason is not None or not _are_kept():
            return None
        try:
            digest = _digest(trace, state)
        except Unknown:
            return None
        return KeptTrace(cache.path() / f"{_digest_of_target(trace.target)}-{digest}.trace")

    def load(self, known: dict[int, Any]) -> Traced | None:
        """known: this process's objects that the trace may refer to. None if there is none."""
        try:
            if self._file.lstat().st_uid != os.geteuid():  # who may write it runs code of his here
                return None
            data = self._file.read_bytes()
        except OSError:
            return None
        digest, pickled = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if digest != _sum(pickled):
            return None
        try:
            raised, traced = Reply(pickled, True).value(known)
        except Exception:  # it names a class that is no longer there
            return None
        return None if raised else traced

    def save(self, traced: Traced) -> None:
        """If the folder cannot be written, the next process has to trace again."""
        reply = self._reply
        whole = traced.failure is None and not (traced.read or traced.numbers or traced.draft)
        if not whole or reply is None or not reply.is_portable or len(reply.data) > _MOST_BYTES:
            return
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._file.parent, prefix=cache.DRAFT_OF_TRACE)
            with os.fdopen(handle, "wb") as draft:
                draft.write(_sum(reply.data) + reply.data)
            os.replace(name, self._file)


def may_have(target: Callable[..., Any]) -> bool:
    """Whether there is a trace of such a target, of whatever call."""
    if not _are_kept():
        return False
    start = f"{_digest_of_target(target)}-"
    try:
        return any(n.startswith(start) and n.endswith(".trace") for n in os.listdir(cache.path()))
    except OSError:
        return False


def _are_kept() -> bool:
    return config.verify == "first" and not os.environ.get("WEFT_DUMP")


def _sum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _digest_of_target(target: Callable[..., Any]) -> str:
    of = type(target) if isinstance(target, torch.nn.Module) else target
    name = (getattr(of, "__module__", None), getattr(of, "__qualname__", None))
    return hashlib.blake2b(repr(name).encode(), digest_size=8).hexdigest()


def _digest(trace: Trace, state: Snapshot) -> str:
    """Raises: Unknown."""
    found = Description()
    found.add(state.key)
    found.object((trace.args, trace.kwargs))
    # The trace refers to these by their numbers.
    found.add(tuple(type(each) for each in trace.known.values()))
    found.add((trace.as_eager, trace.may_make_objects, trace.training, trace.rng))
    found.add((trace.skips_steps, trace.any_lengths, repr(trace.wanted), config.automatic_sizes))
    found.add(_settings())
    _operators(found)
    packages = sorted(each for each in found.packages if not is_stable(sys.modules.get(each, each)))
    found.add((*_variables(packages), *_of_weft(), *_of_modules(packages)))
    return found.digest()


def _operators(found: Description) -> None:
    """What others than torch have defined: the trace runs it where an operator is called. Raises:
    Unknown, if its code cannot be found."""
    for name in sorted({*torch.library._defs, *custom_ops.OPDEFS}):
        namespace = name.partition("::")[0]
        if namespace in _OF_TORCH or namespace.startswith("weft"):
            continue
        if (defined := custom_ops.OPDEFS.get(name)) is not None:
            found.object((name, defined._init_fn, defined._abstract_fn, defined._backward_fn))
        elif is_library_module(sys.modules.get(namespace)):
            found.packages.add(namespace)
        else:
            raise Unknown(f"the operator {name}")


def _settings() -> tuple[Any, ...]:
    """Of torch."""
    return (
        torch._C._dynamo.guards.GlobalStateGuard().__getstate__(),
        torch.is_inference_mode_enabled(),
        torch.get_default_device(),
        torch.get_float32_matmul_precision(),
        torch._C._get_mkldnn_enabled(),
        torch._C._get_flash_sdp_enabled(),
        torch._C._get_mem_efficient_sdp_enabled(),
        torch._C._get_math_sdp_enabled(),
        torch.backends.cpu.get_cpu_capability(),
    )


def _variables(packages: Iterable[str]) -> tuple[str, ...]:
    """Those of the environment that libraries may read."""
    prefixes = (*_OF_LIBRARIES, *(f"{each.upper()}_" for each in packages))
    return tuple(sorted(f"{k}={v}" for k, v in os.environ.items() if k.startswith(prefixes)))


@functools.cache
def _of_weft() -> tuple[Any, ...]:
    """The versions of what traces: files of Weft, torch, Python."""
    files = _sources_in(Path(__file__).parents[1])
    return (
        sys.version,
        str(torch.__version__),
        *(part for file in files for part in _version(file)),
    )


def _sources_in(folder: Path) -> list[Path]:
    """The code in a folder and in those that it links to, as a build does to the sources."""
    found = (
        Path(place, name) for place, _, names in os.walk(folder, followlinks=True) for name in names
    )
    return sorted(each for each in found if each.suffix in (".py", ".so"))


def _of_modules(packages: Iterable[str]) -> tuple[Any, ...]:
    """The versions of what the program was loaded from. Code of the user's and of libraries is read
    by the trace beyond what the state names."""
    starts = tuple(f"{each}." for each in packages)
    names = {*packages, *(name for name in [*sys.modules] if name.startswith(starts))}
    files = (getattr(sys.modules.get(name), "__file__", None) for name in sorted(names))
    return tuple(part for file in files if file for part in _version(Path(file)))


def _version(file: Path) -> tuple[Any, ...]:
    try:
        status = file.stat()
    except OSError:
        return (str(file),)
    return (str(file), status.st_mtime_ns, status.st_size)
