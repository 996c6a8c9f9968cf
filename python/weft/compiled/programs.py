# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of one callable: in which state of torch and of the target each stands for which
calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from weft import _core, config, errors
from weft.artifacts.builds import Options
from weft.capture.reachability import References
from weft.capture.signature import Declined, HasEffects, Heard, Signature, describe
from weft.capture.state import Snapshot, snapshot
from weft.capture.tracing import Given, Tracing
from weft.compiled.specialize import Specialized, declined, specialize
from weft.compiled.specialize_training import specialize_training
from weft.compiled.verification_records import Verified

MOST_SPECIALIZATIONS = 64
_MOST_ENVIRONMENTS = 16
# A call may set what is missing, and find it there the next time; a counter never settles.
_MOST_STATES_WITH_EFFECTS = 3


@dataclass
class Environment:
    """One state of torch and of the target, with the programs made in it."""

    core: _core.Environment
    state: Snapshot
    specializations: list[Specialized] = field(default_factory=list)


@dataclass
class Found:
    """What a call is to be run by, in which state."""

    specialized: Specialized
    environment: Environment
    signature: Signature


@dataclass
class Totals:
    graphs: int = 0
    hits: int = 0  # beside those that C++ counts
    misses: int = 0
    captures: int = 0
    capture_seconds: float = 0.0
    compile_seconds: float = 0.0
    verify_seconds: float = 0.0


class Programs:
    """Found or made for a call, and published in the C++ callable once they are verified.

    callable: that one, while it lives. user_knows: a warning has said that calls run eagerly, so
    that such calls need not be told of again. refused_types: of arguments. given_up: why no call
    is looked at any more.
    """

    def __init__(self, capture: Tracing | Given, options: Options) -> None:
        self.capture = capture
        self.callable: Callable[[], _core.Callable | None] = lambda: None
        self.totals = Totals()
        self.lock = threading.RLock()
        self.user_knows = False
        self.refused_types: tuple[type, ...] = ()
        self.given_up: str | None = None
        self._options = options
        self._environments: list[Environment] = []
        self._states_with_effects = 0
        self._times_heard = 0

    def find(self, args: tuple, kwargs: dict[str, Any]) -> Found:
        """Raises: Declined, for what PyTorch has to run in any state."""
        if self.given_up is not None:
            raise Declined(self.given_up)
        if _core.interposition_active():
            raise Declined("a torch mode, functorch transform or torch.jit.trace is active")
        signature = describe(args, kwargs)
        with self.lock:
            references = self.capture.references()
            state = snapshot(references)
            environment = self._environment(references, state)
            if state.reason is not None:
                raise Declined(state.reason)
            gradients = _wants_gradients(signature, state)
            for specialized in environment.specializations:
                if specialized.wants_gradients == gradients:
                    if specialized.core.matches(args, kwargs):
                        return Found(specialized, environment, signature)
            if len(self.all()) >= MOST_SPECIALIZATIONS:
                raise Declined(f"more than {MOST_SPECIALIZATIONS} programs would be needed")
            specialized = self._compile(references, state, signature, args, kwargs, gradients)
            specialized.wants_gradients = gradients
            if not specialized.transient:
                environment.specializations.append(specialized)
                if specialized.verified:
                    self.publish(environment, specialized)
            return Found(specialized, environment, signature)

    def find_trained(self, args: tuple, kwargs: dict[str, Any]) -> Specialized | None:
        """A program with gradients that stands for the call and has been verified."""
        for environment in self._environments:
            trained = [each for each in environment.specializations if each.training is not None]
            if not trained or not environment.core.holds():
                continue
            for specialized in trained:
                if specialized.verified and specialized.core.matches(args, kwargs):
                    return specialized
        return None

    def all(self) -> list[Specialized]:
        return [each for env in self._environments for each in env.specializations]

    def latest(self) -> Specialized:
        for specialized in reversed(self.all()):
            if specialized.build is not None:
                return specialized
        raise errors.Error("nothing has been compiled yet: call the function first")

    def arm(self) -> None:
        callable_ = self.callable()
        if callable_ is None:
            return
        callable_._arm([each.core for each in self._environments])
        if self.user_knows:
            full = self.given_up is not None or len(self.all()) >= MOST_SPECIALIZATIONS
            callable_._run_eagerly(self.refused_types, full, _none_has_gradients(self.all()))

    def publish(self, environment: Environment, specialized: Specialized) -> None:
        if specialized.build is not None:
            self.totals.graphs += 1
        # A call that records gradients goes through autograd, which C++ does not know.
        if specialized.wants_gradients:
            return
        if config.verify != "always" or specialized.build is None:
            environment.core.add(specialized.core)

    def replace(self, found: Found, instead: Specialized) -> None:
        """`instead` stands for the call from now on."""
        instead.wants_gradients = found.specialized.wants_gradients
        with self.lock:
            programs = found.environment.specializations
            programs[:] = [instead if each is found.specialized else each for each in programs]
            self.publish(found.environment, instead)

    def _environment(self, references: References, state: Snapshot) -> Environment:
        for environment in self._environments:
            if environment.state.key == state.key and environment.core.state_holds():
                self._environments.remove(environment)
                if not environment.state.has_tensors(state.tensors):
                    resolve = self.capture.resolver(references)
                    self._replace_tensors(environment.state.tensors, state.tensors, resolve)
                    self._rebind(environment, resolve)
                break
        else:
            environment = Environment(_core.Environment(), state)
            environment.core.eager = state.reason is not None
        environment.state = state
        environment.core.rearm(state.guards)
        # Once the user knows, such calls need not come here any more.
        eager = self.user_knows and _none_has_gradients(environment.specializations)
        environment.core.eager_while_grad(state.gradients if eager else [])
        self._environments = [environment, *self._environments[: _MOST_ENVIRONMENTS - 1]]
        self.arm()
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

    def _rebind(self, environment: Environment, resolve: Callable[[str], torch.Tensor]) -> None:
        """The same programs for the modules' tensors of now."""
        rebound = [each.rebound(resolve) for each in environment.specializations]
        environment.specializations = rebound
        published = [each for each in rebound if each.verified and not each.wants_gradients]
        always = config.verify == "always"
        environment.core.replace(
            [each.core for each in published if each.build is None or not always]
        )

    def _compile(
        self,
        references: References,
        state: Snapshot,
        signature: Signature,
        args: tuple,
        kwargs: dict[str, Any],
        gradients: bool,
    ) -> Specialized:
        try:
            return self._captured_and_compiled(
                references, state, signature, args, kwargs, gradients
            )
        except HasEffects as why:
            self._count_effects(why.reason)
            made = declined(signature, errors.CaptureError(why.reason))
            # What the first call sets up, the next one finds.
            made.transient = self._states_with_effects == 1
            return made
        except Heard as why:
            # A warning that is given once is no reason for the calls that follow.
            self._times_heard += 1
            made = declined(signature, why)
            made.transient = self._times_heard == 1
            return made
        except errors.CaptureError as why:
            return declined(signature, why)
        except Exception as error:  # a bug of ours costs speed, never the user's result
            reason = f"compilation failed: {type(error).__name__}: {error}"
            return declined(signature, errors.CaptureError(reason))

    def _count_effects(self, reason: str) -> None:
        self._states_with_effects += 1
        if self._states_with_effects == _MOST_STATES_WITH_EFFECTS:
            self.given_up = reason

    def _captured_and_compiled(
        self,
        references: References,
        state: Snapshot,
        signature: Signature,
        args: tuple,
        kwargs: dict[str, Any],
        gradients: bool,
    ) -> Specialized:
        start = time.perf_counter()
        self.totals.captures += 1
        try:
            captured = self.capture.capture(args, kwargs, references, state, signature, gradients)
        finally:
            whole = time.perf_counter() - start
            self.totals.capture_seconds += whole
        lower = captured.lower_seconds
        seconds = {"capture": whole - lower, "lower": lower}
        make = specialize_training if gradients else specialize
        made = make(captured, signature, self._options)
        self.totals.compile_seconds += made.seconds["build"]
        made.seconds = {**seconds, **made.seconds}
        # A warning is shown by PyTorch's first call, which a verified program has no need of.
        remembered = None if captured.warned else Verified.find(made)
        if remembered is not None:
            remembered.apply(made)
        elif config.verify != "off":
            made.verified = False
        return made


def _wants_gradients(signature: Signature, state: Snapshot) -> bool:
    """Whether the call records gradients."""
    return torch.is_grad_enabled() and any(
        tensor.requires_grad for tensor in (*signature.examples, *state.gradients)
    )


def _none_has_gradients(programs: list[Specialized]) -> bool:
    """Whether calls with gradients have come, and PyTorch has to run them."""
    wanting = [each for each in programs if each.wants_gradients]
    return bool(wanting) and all(each.build is None for each in wanting)
