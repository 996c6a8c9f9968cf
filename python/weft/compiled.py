# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.compile`, and what stands behind the callable that it returns.

The callable is C++ and answers every call that one of its programs stands for. `Compiled`
is asked about the others: it compiles a program for them, or finds the reason why PyTorch
has to run them.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from weft import _core, errors, frontend
from weft.builds import Options, lower_to, most_threads
from weft.capture import Given, Tracing
from weft.kernels import kernel_calls
from weft.profile import Profile
from weft.report import render
from weft.signature import Declined, HasEffects, NeedsGradient, OnlyAsEager, Signature, describe
from weft.specialize import Specialized, declined, specialize
from weft.state import Snapshot, snapshot

_MOST_ENVIRONMENTS = 16
_MOST_SPECIALIZATIONS = 64
# A call may set what is missing, and find it there the next time; a counter never settles.
_MOST_STATES_WITH_EFFECTS = 3

_GRADIENT_ADVICE = (
    "weft does not compile training yet: PyTorch runs this call, because {reason}; "
    "call it under torch.no_grad() or torch.inference_mode() to run it compiled"
)


def compile(
    target: Callable[..., Any] | None = None,
    *,
    isa: str = "native",
    threads: int | None = None,
    schedule: str = "",
    precision: str = "float32",
) -> Callable[..., Any]:
    """A callable that does what `target` does, by programs compiled on first use.

    target: a torch.nn.Module or a function; without it, the result is a decorator.
    isa: "native", or "avx2" or "avx512" to compile for that instruction set, with those of the
    machine's extensions that work on its vectors: "avx512" leaves out matrix units (AMX) alone.
    "amx" is "native" with float32 on the matrix unit too, as exact bfloat16 parts: faster on a
    processor that keeps the unit at its full rate, slower on one that throttles it.
    threads: the most that a call runs on; by default the machine's. Calls run on as many of them
    as `weft.get_num_threads()` gives: torch's number, unless `weft.set_num_threads` or
    WEFT_THREADS says otherwise.
    schedule: fixes numbers of every contraction's schedule that are chosen otherwise, such as
    "rows=6,groups=4,chunk=768,panels=2"; where they do not fit, a warning names the bound and
    PyTorch runs the call.
    precision: "bf16" rounds the operands of float32 matmuls and convolutions to bfloat16; their
    sums, and everything else, stay float32. It is off with "float32". Slower on processors that
    have no instructions for bfloat16.
    Raises: TypeError, if `target` cannot be called; errors.ConfigError for unknown options.
    """
    if target is None:
        return lambda function: compile(
            function, isa=isa, threads=threads, schedule=schedule, precision=precision
        )
    if not callable(target):
        raise TypeError(f"expected a module or function, found {type(target).__qualname__}")
    return Compiled(target, Tracing(target), _options(isa, threads, schedule, precision)).callable


def from_exported_program(
    program: torch.export.ExportedProgram,
    *,
    isa: str = "native",
    threads: int | None = None,
    schedule: str = "",
    precision: str = "float32",
) -> Callable[..., Any]:
    """A callable for the calls that `program` was exported for; its weights are taken live.

    Other calls run `program.module()`, whose checks say what is wrong with them. Options as
    for `compile`.
    """
    if not isinstance(program, torch.export.ExportedProgram):
        raise TypeError(f"expected an ExportedProgram, found {type(program).__qualname__}")
    options = _options(isa, threads, schedule, precision)
    return Compiled(program.module(), Given(program), options).callable


def _options(isa: str, threads: int | None, schedule: str, precision: str) -> Options:
    if isa not in ("native", "avx2", "avx512", "amx"):
        raise errors.ConfigError(f"expected isa native, avx2, avx512 or amx, found {isa!r}")
    if threads is not None and threads < 1:
        raise errors.ConfigError(f"expected threads of at least 1, found {threads}")
    if precision not in ("float32", "bf16"):
        raise errors.ConfigError(f"expected precision float32 or bf16, found {precision!r}")
    return Options(isa, most_threads() if threads is None else threads, schedule, precision)


@dataclass
class _Environment:
    """One state of torch and of the target, with the programs made in it."""

    core: _core.Environment
    key: tuple
    reason: str | None
    specializations: list[Specialized] = field(default_factory=list)


class Compiled:
    """The face of one callable. Attributes that it lacks are those of the target.

    original: the module or function. callable: what the user calls.
    """

    def __init__(
        self, original: Callable[..., Any], capture: Tracing | Given, options: Options
    ) -> None:
        self.original = original
        self.options = options
        self._capture = capture
        self.callable = _core.Callable(self)
        self.eager_reasons: Counter[str] = Counter()
        self._environments: list[_Environment] = []
        self._lock = threading.RLock()
        self._warned = False
        self._states_with_effects = 0
        self._given_up: str | None = None

    def __getattr__(self, name: str) -> Any:
        if name == "original":
            raise AttributeError(name)
        return getattr(self.original, name)

    # What the C++ callable asks for.

    def dispatch(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call that no program stands for yet."""
        try:
            specialized = self._specialization(args, kwargs)
        except NeedsGradient as needs:
            self._advise(needs.reason)
            return self._eager(needs.reason, args, kwargs)
        except Declined as why:
            return self._eager(_with_location(why.reason, why.location), args, kwargs)
        outcome, value = specialized.core.call(args, kwargs)
        if outcome:
            return value
        if specialized.reason is not None:
            value = _with_location(specialized.reason, specialized.location)
        return self._eager(value, args, kwargs)

    def declined(
        self, core: _core.Specialization, reason: str, args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """A call whose program could not run it; nothing has been written yet."""
        if not reason:
            reason = next(
                _with_location(s.reason, s.location) for s in self._all() if s.core is core
            )
        return self._eager(reason, args, kwargs)

    # What the user asks for.

    def report(self, file: Any = None) -> None:
        """Prints what has been compiled, how fast it runs and what PyTorch ran and why.

        file: where to, by default standard output.
        """
        render(self._all(), self.eager_reasons, file)

    def profile(self, *args: Any, repeats: int = 20, **kwargs: Any) -> Profile:
        """Times every kernel of the program for these arguments in `repeats` calls, after one
        that is not counted. They are calls like others: what they write is written each time.

        Raises: errors.Error, if PyTorch has to run the call; errors.ConfigError, if `repeats`
        is less than 1.
        """
        if repeats < 1:
            raise errors.ConfigError(f"expected repeats of at least 1, found {repeats}")
        try:
            specialized = self._specialization(args, kwargs)
        except Declined as why:  # gradients among the reasons
            raise errors.Error(
                f"PyTorch runs this call: {_with_location(why.reason, why.location)}"
            ) from None
        runs = []
        for _ in range(repeats + 1):
            timed, outcome = specialized.core.time(args, kwargs)
            if not timed:
                reason = specialized.reason or outcome
                raise errors.Error(
                    f"PyTorch runs this call: {_with_location(reason, specialized.location)}"
                )
            runs.append(outcome)
        kernels = kernel_calls(specialized.manifest, runs[1:])
        return Profile(specialized.shapes, _core.get_num_threads(), repeats, kernels)

    def ir(self, stage: str = "graph") -> str:
        """The IR of the latest program at a stage (`graph` … `llvm`), as text.

        Raises: errors.Error, if nothing has been compiled; errors.CompileError for an
        unknown stage.
        """
        build = self._latest().build
        return lower_to(build.graph, stage, build.options)

    @property
    def compile_seconds(self) -> dict[str, float]:
        """How long the latest program took: `capture` and `lower` up to the graph, `build`
        from there to the loaded artifact; the compiler's own stages, which are part of
        `build`, unless the artifact was found in the cache.

        Raises: errors.Error, if nothing has been compiled.
        """
        latest = self._latest()
        return {**latest.seconds, **latest.build.seconds}

    @property
    def artifact_path(self) -> Path:
        """Where the latest program's artifact lies."""
        return Path(self._latest().build.artifact.path)

    @property
    def artifact_paths(self) -> list[Path]:
        return [Path(s.build.artifact.path) for s in self._all() if s.build is not None]

    # How calls are decided.

    def _specialization(self, args: tuple, kwargs: dict[str, Any]) -> Specialized:
        if self._given_up is not None:
            raise Declined(self._given_up)
        if _core.interposition_active():
            raise Declined("a torch mode or functorch transform is active")
        with self._lock:
            references = self._capture.references()
            state = snapshot(references)
            environment = self._environment(state)
            if environment.reason is not None:
                raise Declined(environment.reason)
            _check_gradients(state)
            signature = describe(args, kwargs)
            for specialized in environment.specializations:
                if specialized.core.matches(args, kwargs):
                    return specialized
            if len(self._all()) >= _MOST_SPECIALIZATIONS:
                raise Declined(f"more than {_MOST_SPECIALIZATIONS} programs would be needed")
            specialized = self._compile(state, signature, args, kwargs)
            environment.specializations.append(specialized)
            environment.core.add(specialized.core)
            # Tracing has touched the modules' dicts; their contents are as before.
            environment.core.rearm(snapshot(references).guards)
            return specialized

    def _environment(self, state: Snapshot) -> _Environment:
        for environment in self._environments:
            if environment.key == state.key and environment.core.state_holds():
                self._environments.remove(environment)
                break
        else:
            environment = _Environment(_core.Environment(), state.key, state.reason)
            environment.core.eager = state.reason is not None
        environment.core.rearm(state.guards)
        # Once the user knows, such calls need not come here any more.
        environment.core.eager_while_grad(state.gradients if self._warned else [])
        self._environments = [environment, *self._environments[: _MOST_ENVIRONMENTS - 1]]
        self.callable._arm([each.core for each in self._environments])
        return environment

    def _compile(
        self, state: Snapshot, signature: Signature, args: tuple, kwargs: dict[str, Any]
    ) -> Specialized:
        try:
            try:
                return self._captured_and_compiled(state, signature, args, kwargs)
            except OnlyAsEager:
                # What eager execution does has branches or sizes that depend on values: what the
                # program does for compilers has been written to be compiled.
                return self._captured_and_compiled(state, signature, args, kwargs, as_eager=False)
        except HasEffects as why:
            self._states_with_effects += 1
            if self._states_with_effects == _MOST_STATES_WITH_EFFECTS:
                self._given_up = why.reason
            return declined(signature, why.reason, None)
        except Declined as why:
            return declined(signature, why.reason, why.location)
        except frontend.Unsupported as why:
            location = None if why.location is None else str(why.location)
            return declined(signature, why.reason, location)
        except Exception as error:  # a bug of ours costs speed, never the user's result
            reason = f"compilation failed: {type(error).__name__}: {error}"
            warnings.warn(f"{reason}; PyTorch runs it", errors.WeftWarning, stacklevel=5)
            return declined(signature, reason, None)

    def _captured_and_compiled(
        self, state: Snapshot, signature: Signature, args, kwargs, *, as_eager: bool = True
    ) -> Specialized:
        start = time.perf_counter()
        try:
            captured = self._capture.capture(args, kwargs, as_eager=as_eager)
        finally:
            state.restore()
        seconds = {"capture": time.perf_counter() - start}
        try:
            made = specialize(captured, signature, self.options)
        except frontend.Unsupported as why:
            if captured.as_eager:
                raise OnlyAsEager from why
            raise
        made.seconds = {**seconds, **made.seconds}
        return made

    def _eager(self, reason: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        self.eager_reasons[reason] += 1
        return self.original(*args, **kwargs)

    def _advise(self, reason: str) -> None:
        if not self._warned:
            self._warned = True
            advice = _GRADIENT_ADVICE.format(reason=reason)
            warnings.warn(advice, errors.WeftWarning, stacklevel=3)

    def _all(self) -> list[Specialized]:
        return [each for env in self._environments for each in env.specializations]

    def _latest(self) -> Specialized:
        for specialized in reversed(self._all()):
            if specialized.build is not None:
                return specialized
        raise errors.Error("nothing has been compiled yet: call the function first")


def _check_gradients(state: Snapshot) -> None:
    for tensor in state.gradients:
        if tensor.requires_grad:
            raise NeedsGradient("parameters require gradients")


def _with_location(reason: str | None, location: str | None) -> str:
    return f"{reason} ({location})" if location else f"{reason}"
