# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands behind a compiled callable or module.

The callable is C++ and answers every call that one of its programs stands for. `Compiled`
is asked about the others: it compiles a program for them, or finds the reason why PyTorch
has to run them. PyTorch runs a program's first call too, and the program is published if it has
reproduced that (verification.py).
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.fx._symbolic_trace import is_fx_symbolic_tracing

from weft import _core, config, errors, frontend, isolated
from weft.builds import Options, lower_to
from weft.capture import Given, Tracing
from weft.difference import explain
from weft.kernels import kernel_calls
from weft.profiling import Profile
from weft.references import INSTALLED, References
from weft.reporting import render
from weft.signature import (
    Declined,
    HasEffects,
    Heard,
    NeedsGradient,
    Signature,
    describe,
)
from weft.specialize import Specialized, declined, specialize
from weft.state import Snapshot, snapshot
from weft.verification import Check, Verdict
from weft.verified import Verified

_MOST_ENVIRONMENTS = 16
_MOST_SPECIALIZATIONS = 64
# A call may set what is missing, and find it there the next time; a counter never settles.
_MOST_STATES_WITH_EFFECTS = 3
# Another thread may come between now and then.
_MOST_INCONCLUSIVE_CHECKS = 3

_GRADIENT_ADVICE = (
    "weft does not compile training yet: PyTorch runs this call, because {reason}; "
    "call it under torch.no_grad() or torch.inference_mode() to run it compiled"
)
_ADVICE = "PyTorch runs this call: {reason}; weft.report() lists such calls from now on"
_TOO_MANY = f"more than {_MOST_SPECIALIZATIONS} programs would be needed"


@dataclass
class _Environment:
    """One state of torch and of the target, with the programs made in it."""

    core: _core.Environment
    state: Snapshot
    specializations: list[Specialized] = field(default_factory=list)


@dataclass
class _Found:
    """What a call is to be run by, in which state."""

    specialized: Specialized
    environment: _Environment
    signature: Signature


@dataclass
class _Totals:
    graphs: int = 0
    hits: int = 0  # beside those that C++ counts
    misses: int = 0
    captures: int = 0
    capture_seconds: float = 0.0
    compile_seconds: float = 0.0
    verify_seconds: float = 0.0


class Compiled:
    """The face of one callable. Attributes that it lacks are those of the target.

    original: the module or function. traced: the same, for torch.fx; of a module, as its parents
    hold it. settings: the arguments of `weft.compile`.
    """

    def __init__(
        self,
        original: Callable[..., Any],
        capture: Tracing | Given,
        options: Options,
        settings: dict[str, Any],
    ) -> None:
        self.original = original
        self.traced = original  # what torch.fx shall see
        self.options = options
        self.settings = settings
        self.eager_reasons: Counter[str] = Counter()
        self._capture = capture
        self._callable: Callable[[], _core.Callable | None] = lambda: None
        self._environments: list[_Environment] = []
        self._totals = _Totals()
        self._lock = threading.RLock()
        self._warned = False
        self._refused_types: tuple[type, ...] = ()
        self._states_with_effects = 0
        self._times_heard = 0
        self._given_up: str | None = None

    def callable(self) -> _core.Callable:
        """What the user calls; it holds this face, and nobody holds it but the user."""
        made = _core.Callable(self)
        self._callable = weakref.ref(made)
        return made

    @property
    def face(self) -> Compiled:
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "original":
            raise AttributeError(name)
        return getattr(self.original, name)

    # What the C++ callable asks for.

    def dispatch(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call that no program stands for yet."""
        if isolated.in_child():  # what a traced program calls becomes part of it
            return self.original(*args, **kwargs)
        if is_fx_symbolic_tracing():
            return self.traced(*args, **kwargs)
        with _outside_dynamo():
            return self._dispatch(args, kwargs)

    def _dispatch(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        self._totals.misses += 1
        try:
            found = self._find(args, kwargs)
        except Declined as why:
            return self._declined(why, args, kwargs)
        except Exception as error:  # an object of the user's that cannot be looked at, or a bug
            reason = f"the state cannot be read: {type(error).__name__}: {error}"
            return self._eager(reason, args, kwargs)
        specialized = found.specialized
        if specialized.transient:  # PyTorch runs first calls anyway
            return self.original(*args, **kwargs)
        if specialized.reason is not None:
            reason = _with_location(specialized.reason, specialized.location)
            return self._eager(reason, args, kwargs)
        if config.verify == "always" or not specialized.verified:
            return self._checked(found, args, kwargs)
        outcome, value = specialized.core.call(args, kwargs)
        if not outcome:
            return self._eager(value, args, kwargs)
        self._totals.hits += 1
        return value

    def declined(
        self, core: _core.Specialization, reason: str, args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """A call whose program could not run it; nothing has been written yet."""
        if isolated.in_child():
            return self.original(*args, **kwargs)
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
            found = self._find(args, kwargs)
            if not found.specialized.verified:
                self._checked(found, args, kwargs)
            specialized = found.specialized
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

    def stats(self) -> dict[str, Any]:
        """What has happened so far.

        graphs: programs published. breaks: why calls ran eagerly, each reason once; that a first
        call is run by PyTorch for comparison, and ops that it computes inside a program, are none.
        hits: calls that a program answered. misses: calls that no program was ready for. captures:
        programs traced. capture_seconds, compile_seconds, verify_seconds: spent on tracing, on
        lowering and compiling, and on comparing first calls, PyTorch's own time left out.
        """
        callable_ = self._callable()
        hits = 0 if callable_ is None else callable_._hits()
        totals = vars(self._totals) | {"hits": self._totals.hits + hits}
        return {"graphs": totals.pop("graphs"), "breaks": list(self.eager_reasons), **totals}

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

    def _find(self, args: tuple, kwargs: dict[str, Any]) -> _Found:
        """Raises: Declined, for what PyTorch has to run in any state."""
        if self._given_up is not None:
            raise Declined(self._given_up)
        if _core.interposition_active():
            raise Declined("a torch mode, functorch transform or torch.jit.trace is active")
        signature = describe(args, kwargs)
        with self._lock:
            references = self._capture.references()
            state = snapshot(references)
            environment = self._environment(references, state)
            if state.reason is not None:
                raise Declined(state.reason)
            _check_gradients(state)
            for specialized in environment.specializations:
                if specialized.core.matches(args, kwargs):
                    return _Found(specialized, environment, signature)
            if len(self._all()) >= _MOST_SPECIALIZATIONS:
                raise Declined(_TOO_MANY)
            specialized = self._compile(references, state, signature, args, kwargs)
            if not specialized.transient:
                environment.specializations.append(specialized)
                if specialized.verified:
                    self._publish(environment, specialized)
            return _Found(specialized, environment, signature)

    def _environment(self, references: References, state: Snapshot) -> _Environment:
        for environment in self._environments:
            if environment.state.key == state.key and environment.core.state_holds():
                self._environments.remove(environment)
                if not environment.state.has_tensors(state.tensors):
                    resolve = self._capture.resolver(references)
                    self._replace_tensors(environment.state.tensors, state.tensors, resolve)
                    self._rebind(environment, resolve)
                break
        else:
            environment = _Environment(_core.Environment(), state)
            environment.core.eager = state.reason is not None
        environment.state = state
        environment.core.rearm(state.guards)
        # Once the user knows, such calls need not come here any more.
        environment.core.eager_while_grad(state.gradients if self._warned else [])
        self._environments = [environment, *self._environments[: _MOST_ENVIRONMENTS - 1]]
        self._arm()
        return environment

    def _replace_tensors(
        self,
        old: list[torch.Tensor],
        new: list[torch.Tensor],
        resolve: Callable[[str], torch.Tensor],
    ) -> None:
        """Other states let go of the modules' old tensors too; until they come back, they do not
        hold."""
        for environment in self._environments:
            if environment.state.has_tensors(old):
                guards = _core.Guards()
                guards.expire()
                environment.state = Snapshot(environment.state.key, new, guards)
                environment.core.rearm(guards)
                environment.core.eager_while_grad([])
                self._rebind(environment, resolve)

    def _rebind(self, environment: _Environment, resolve: Callable[[str], torch.Tensor]) -> None:
        """The same programs for the modules' tensors of now."""
        rebound = [each.rebound(resolve) for each in environment.specializations]
        environment.specializations = rebound
        published = [each for each in rebound if each.verified]
        always = config.verify == "always"
        environment.core.replace(
            [each.core for each in published if each.build is None or not always]
        )

    def _arm(self) -> None:
        callable_ = self._callable()
        if callable_ is None:
            return
        callable_._arm([each.core for each in self._environments])
        if self._warned:
            full = self._given_up is not None or len(self._all()) >= _MOST_SPECIALIZATIONS
            callable_._run_eagerly(self._refused_types, full)

    def _publish(self, environment: _Environment, specialized: Specialized) -> None:
        if specialized.build is not None:
            self._totals.graphs += 1
        if config.verify != "always" or specialized.build is None:
            environment.core.add(specialized.core)

    def _compile(
        self,
        references: References,
        state: Snapshot,
        signature: Signature,
        args: tuple,
        kwargs: dict[str, Any],
    ) -> Specialized:
        try:
            return self._captured_and_compiled(references, state, signature, args, kwargs)
        except HasEffects as why:
            self._count_effects(why.reason)
            made = declined(signature, why.reason, None)
            # What the first call sets up, the next one finds.
            made.transient = self._states_with_effects == 1
            return made
        except Heard as why:
            # A warning that is given once is no reason for the calls that follow.
            self._times_heard += 1
            made = declined(signature, why.reason, why.location)
            made.transient = self._times_heard == 1
            return made
        except Declined as why:
            return declined(signature, why.reason, why.location)
        except frontend.Unsupported as why:
            location = None if why.location is None else str(why.location)
            return declined(signature, why.reason, location)
        except Exception as error:  # a bug of ours costs speed, never the user's result
            reason = f"compilation failed: {type(error).__name__}: {error}"
            return declined(signature, reason, None)

    def _count_effects(self, reason: str) -> None:
        self._states_with_effects += 1
        if self._states_with_effects == _MOST_STATES_WITH_EFFECTS:
            self._given_up = reason

    def _captured_and_compiled(
        self,
        references: References,
        state: Snapshot,
        signature: Signature,
        args: tuple,
        kwargs: dict[str, Any],
    ) -> Specialized:
        start = time.perf_counter()
        self._totals.captures += 1
        try:
            captured = self._capture.capture(args, kwargs, references, state, signature)
        finally:
            whole = time.perf_counter() - start
            self._totals.capture_seconds += whole
        lower = captured.lower_seconds
        seconds = {"capture": whole - lower, "lower": lower}
        made = specialize(captured, signature, self.options)
        self._totals.compile_seconds += made.seconds["build"]
        made.seconds = {**seconds, **made.seconds}
        remembered = Verified.find(made)
        if remembered is not None:
            remembered.apply(made)
        elif config.verify != "off":
            made.verified = False
        return made

    # The first call of a program.

    def _checked(self, found: _Found, args: tuple, kwargs: dict[str, Any]) -> Any:
        specialized = found.specialized
        with self._lock:
            ours = not specialized.checking
            specialized.checking = True
        if not ours:  # another thread, or a call within this one, finds out
            return self.original(*args, **kwargs)
        try:
            return self._check(found, args, kwargs)
        finally:
            specialized.checking = False

    def _check(self, found: _Found, args: tuple, kwargs: dict[str, Any]) -> Any:
        specialized, state = found.specialized, found.environment.state
        start = time.perf_counter()
        try:
            check = Check(specialized, found.signature, state, args, kwargs)
        except Exception as error:
            self._keep_away(found, f"it cannot be compared: {type(error).__name__}: {error}")
            return self.original(*args, **kwargs)
        middle = time.perf_counter()
        value = self.original(*args, **kwargs)
        end = time.perf_counter()
        try:
            self._settle(found, check, value, args, kwargs)
        except errors.NotCompiledError:
            raise
        except Exception as error:  # a bug of ours costs speed, never the user's result
            self._keep_away(found, f"it cannot be compared: {type(error).__name__}: {error}")
        self._totals.verify_seconds += time.perf_counter() - end + middle - start
        return value

    def _settle(
        self, found: _Found, check: Check, value: Any, args: tuple, kwargs: dict[str, Any]
    ) -> None:
        """What becomes of a program, now that PyTorch's value is known."""
        specialized, state = found.specialized, found.environment.state
        finding = check.conclude(
            value, lambda: self._change_of(state), lambda: self.original(*args, **kwargs)
        )
        if finding.verdict is Verdict.INCONCLUSIVE:
            specialized.inconclusive += 1
            if specialized.inconclusive >= _MOST_INCONCLUSIVE_CHECKS:
                self._keep_away(found, f"nothing is known of it: {finding.reason}")
        elif finding.verdict is Verdict.DIFFERENT:
            inputs = dict(zip(specialized.lowered.inputs, check.inputs))
            values = functools.partial(self._capture.values, args, kwargs, state, inputs)
            self._keep_away(found, f"{finding.reason}{explain(specialized, values)}")
        else:
            self._accept(found, finding.layouts)

    def _accept(self, found: _Found, layouts: dict[int, tuple[tuple[int, ...], int]]) -> None:
        specialized = found.specialized
        with self._lock:
            if specialized.verified:
                return
            record = Verified.of(specialized, layouts)
            record.apply(specialized)
            record.save()
            self._publish(found.environment, specialized)
            # What the call did and undid in dicts is no change.
            found.environment.core.rearm(snapshot(self._capture.references()).guards)

    def _keep_away(self, found: _Found, difference: str) -> None:
        """PyTorch runs such calls from now on; what was compiled stays for the report."""
        reason = f"the program does not reproduce eager execution: {difference}"
        if self.settings.get("fullgraph"):
            raise errors.NotCompiledError(reason)
        with self._lock:
            instead = declined(found.signature, reason, None)
            programs = found.environment.specializations
            programs[:] = [instead if each is found.specialized else each for each in programs]
            found.specialized.reason = reason
            self._publish(found.environment, instead)
        self.eager_reasons[reason] += 1
        self._advise(reason)

    def _change_of(self, before: Snapshot) -> str | None:
        """What has become of the state since, None if it is as it was."""
        if before.guards.hold():
            return None
        now = snapshot(self._capture.references())
        if not before.bindings.hold() or not now.same_as(before):
            return "attributes of the module or globals changed meanwhile"
        return None

    # Calls that PyTorch runs.

    def _declined(self, why: Declined, args: tuple, kwargs: dict[str, Any]) -> Any:
        if why.type is not None and why.type not in self._refused_types:
            self._refused_types = (*self._refused_types, why.type)
        reason = _with_location(why.reason, why.location)
        advice = _GRADIENT_ADVICE if isinstance(why, NeedsGradient) else _ADVICE
        return self._eager(reason, args, kwargs, advice)

    def _eager(
        self, reason: str, args: tuple, kwargs: dict[str, Any], advice: str = _ADVICE
    ) -> Any:
        if self.settings.get("fullgraph"):
            raise errors.NotCompiledError(reason)
        self.eager_reasons[reason] += 1
        self._advise(reason, advice)
        return self.original(*args, **kwargs)

    def _advise(self, reason: str, advice: str = _ADVICE) -> None:
        known, self._warned = self._warned, True
        self._arm()
        if not known:
            warnings.warn(advice.format(reason=reason), errors.WeftWarning, _frames_to_user())

    def _all(self) -> list[Specialized]:
        return [each for env in self._environments for each in env.specializations]

    def _latest(self) -> Specialized:
        for specialized in reversed(self._all()):
            if specialized.build is not None:
                return specialized
        raise errors.Error("nothing has been compiled yet: call the function first")


@contextlib.contextmanager
def _outside_dynamo() -> Iterator[None]:
    """Our own code is none that torch.compile around it should look at."""
    before = torch._C._dynamo.eval_frame.set_eval_frame(None)
    try:
        yield
    finally:
        torch._C._dynamo.eval_frame.set_eval_frame(before)


def _frames_to_user() -> int:
    """The `stacklevel` with which the function that calls this one warns at the user's line: that
    of the nearest caller that is not installed, such as torch's Sequential, if there is one."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    nearest = level
    while frame.f_code.co_filename.startswith(INSTALLED):
        if frame.f_back is None:
            return nearest
        level, frame = level + 1, frame.f_back
    return level


def _check_gradients(state: Snapshot) -> None:
    for tensor in state.gradients:
        if tensor.requires_grad:
            raise NeedsGradient("parameters require gradients")


def _with_location(reason: str | None, location: str | None) -> str:
    return f"{reason} ({location})" if location else f"{reason}"
