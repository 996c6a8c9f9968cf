# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of one callable: for which calls each stands, in which state of torch and of the
target."""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from weft import _core, config, errors
from weft.artifacts.builds import Options
from weft.capture.argument_objects import ChangingObjects
from weft.capture.given import Given
from weft.capture.isolated import Abandoned
from weft.capture.places_of_changes import place_of
from weft.capture.reachability import References
from weft.capture.signature import ChangesArgument, Declined, HasEffects, Heard, describe
from weft.capture.snapshots import Snapshot
from weft.capture.state import snapshot
from weft.capture.tracing import Tracing
from weft.compiled.assumptions import Assumptions
from weft.compiled.checkpoints import Regions
from weft.compiled.eviction import Admission, evict
from weft.compiled.length_arguments import VaryingLengths
from weft.compiled.number_arguments import TakenNumbers, VaryingNumbers, found_for, with_numbers
from weft.compiled.ranges import RangeProgram, Ranges
from weft.compiled.recorded_calls import record_in_cpp
from weft.compiled.requests import (
    Environment,
    FillsObject,
    Found,
    Request,
    is_whole,
    none_has_gradients,
    wants_gradients,
)
from weft.compiled.sizes import Sizes
from weft.compiled.specialize import Specialized, declined
from weft.compiled.specialize_training import specialize_call
from weft.compiled.totals import Totals
from weft.compiled.user_frames import failure
from weft.compiled.verification_records import Verified

if TYPE_CHECKING:
    from weft.compiled.background import Job

MOST_SPECIALIZATIONS = 64
_MOST_ENVIRONMENTS = 16
# A call may set something that is missing, and find it the next time; a counter never settles.
_MOST_STATES_WITH_EFFECTS = 3
# Programs in a row whose state no longer existed when they were finished.
_MOST_LATE = 16


class Programs:
    """Programs are found or made for a call, and published in the C++ callable once verified.

    callable: that one, while it lives. user_knows: a warning has said that calls run in eager mode
    and need not be reported again. refused_types: of arguments. given_up: why no call is examined
    any more. failed_pass: the latest failure of a pass of the user's. pending: requests in the
    background. pending_in: environments in which PyTorch ran such calls. inconclusive: first calls
    in a row that proved nothing. lock: not held during background compilations.
    """

    def __init__(
        self,
        capture: Tracing | Given,
        options: Options,
        sizes: Sizes | None = None,
        automatic: bool = False,
    ) -> None:
        self.capture = capture
        # An exported program keeps the sizes with which it was exported.
        self.ranges = None if sizes is None else Ranges(weakref.ref(self), sizes, automatic)
        self._takes_numbers = automatic
        self.callable: Callable[[], _core.Callable | None] = lambda: None
        self.totals = Totals()
        self.lock = threading.RLock()
        self.pending: tuple[Job, ...] = ()
        self.pending_in = Regions()
        self.options = options
        self._forget()
        _all.add(self)

    def _forget(self) -> None:
        """Forgets all programs, and what was found out about calls."""
        self.user_knows = False
        self.failed_pass: errors.PassError | None = None
        self.refused_types: tuple[type, ...] = ()
        self.given_up: errors.CaptureError | None = None
        self._admission = Admission()
        self._environments: list[Environment] = []
        self._states_with_effects = self.inconclusive = 0
        self._times_heard = 0
        self._late = 0
        self._changing = ChangingObjects()
        traces = isinstance(self.capture, Tracing)
        self.varying = VaryingNumbers(self._takes_numbers and traces, traces)
        self._defers = True
        self._lengths = VaryingLengths()
        self.newest: Assumptions | None = None
        if self.ranges is not None:
            self.ranges.forget()

    def find(self, args: tuple, kwargs: dict[str, Any]) -> Found:
        """The program for a call. Raises: Declined, if PyTorch has to run the call in any state."""
        with self.lock:
            found = self.look_up(args, kwargs)
            try:
                return found if isinstance(found, Found) else self.entered(found)
            except FillsObject:
                return self.find(args, kwargs)

    def entered(self, request: Request) -> Found:
        """Compiles the program of a request for exactly its sizes."""
        specialized = self.compile(request)
        self._enter(request, specialized)
        call = (request.signature, request.args, request.kwargs)
        return found_for(specialized, request.environment, *call)

    def look_up(
        self, args: tuple, kwargs: dict[str, Any], for_sizes: bool = True
    ) -> Found | Request:
        """The program for a call, or a request if there is none. for_sizes: whether sizes may be
        symbols. Raises: Declined, as `find`."""
        if self.given_up is not None:
            raise Declined(self.given_up.reason, self.given_up.location)
        if _core.interposition_active():
            raise Declined("a torch mode, functorch transform or torch.jit.trace is active")
        signature = describe(args, kwargs)
        self._changing.refuse(signature)
        with self.lock:
            references = self.capture.references()
            state = self.varying.state(references, signature)
            environment = self._environment(references, state)
            if state.reason is not None:
                raise Declined(state.reason, place_of(references, ()))
            gradients = wants_gradients(signature, state)
            for specialized in environment.specializations:
                if specialized.wants_gradients == gradients:
                    if specialized.core.matches(args, kwargs):
                        return found_for(specialized, environment, signature, args, kwargs)
            if len(self.all()) >= MOST_SPECIALIZATIONS and not self._admission.admits(self.hits()):
                raise Declined(
                    f"more than {MOST_SPECIALIZATIONS} programs would be needed, and few of them "
                    "answer more than a call"
                )
            if environment.may_pass:
                environment.may_pass = False
                made = declined(signature, errors.CaptureError("hooks have been set"))
                made.transient = True
                return Found(made, environment, signature)
            found = Request(args, kwargs, signature, references, state, environment, gradients)
            found.numbers = self.varying.wanted(signature, state, gradients)
            takes_sizes = not found.numbers.leaves or self.varying.are_few(found.numbers)
            if self.ranges is not None and for_sizes and takes_sizes:
                found.wanted = self.ranges.wanted(found)
                if found.wanted:
                    found.numbers = found.numbers.of_attributes()
            return found

    def compile(self, request: Request, apart: bool = False) -> Specialized:
        """The program of a request, or why there is none. apart: whether to compile in child
        processes. Raises: FillsObject, once for calls of a kind."""
        made = self._compile(request, apart)
        made.wants_gradients = request.gradients
        return made

    def enter_later(self, request: Request, specialized: Specialized) -> None:
        """Enters a program that was compiled in the background, if its state still exists."""
        with self.lock:
            if (
                self._stands(request)
                and specialized.core.matches(request.args, request.kwargs)
                and self.change_of(request.state) is None
            ):
                self._late = 0
                specialized.eager_in.update(self.pending_in)
                self._enter(request, specialized)
                return
            self._late += 1
            if self._late >= _MOST_LATE:
                self.given_up = Declined("the state changes while programs are compiled")

    def _stands(self, request: Request) -> bool:
        """Whether the state that a program is for still exists, with its tensors."""
        is_known = any(each is request.environment for each in self._environments)
        return is_known and request.environment.state.has_tensors(request.state.tensors)

    def _enter(self, request: Request, specialized: Specialized) -> None:
        if specialized.transient:
            return
        while len(self.all()) >= MOST_SPECIALIZATIONS:
            evict(self._environments)
        request.environment.specializations.append(specialized)
        if specialized.build is not None:
            self.newest = Assumptions.of(request, self.target, specialized)
        self.has_used(specialized)
        if specialized.verified:
            self.publish(request.environment, specialized)

    def has_used(self, specialized: Specialized) -> None:
        callable_ = self.callable()
        if callable_ is not None:
            specialized.core.last_use = callable_._tick()

    def hits(self) -> int:
        """The calls that programs have answered."""
        return self.totals.hits + self.hits_of_callable()

    def hits_of_callable(self) -> int:
        """The number of hits that C++ counts."""
        callable_ = self.callable()
        return 0 if callable_ is None else callable_._hits()

    def state(self) -> Snapshot:
        """A snapshot of the present state, as environments have it."""
        return snapshot(self.capture.references(), free=self.varying.free)

    def change_of(self, before: Snapshot) -> str | None:
        """What has changed in the state since, or None."""
        if before.guards.hold():
            return None
        now = self.state()
        if not before.bindings.hold() or not now.same_as(before):
            return "attributes of the module or globals changed meanwhile"
        return None

    def find_trained(
        self, args: tuple, kwargs: dict[str, Any], again: bool = False
    ) -> Specialized | None:
        """A verified program with gradients that stands for the call. again: the backward of a
        checkpoint is repeating the call."""
        for environment in self._environments:
            trained = [each for each in environment.specializations if each.training is not None]
            if not trained or not environment.core.holds():
                continue
            for specialized in trained:
                if specialized.training.asked and not again:
                    self._compile_backwards(environment)
                    return None
                if specialized.verified and specialized.core.matches(args, kwargs):
                    return specialized
        return None

    def find_range(self, args: tuple, kwargs: dict[str, Any]) -> tuple[RangeProgram, tuple] | None:
        """A program for a range of sizes that stands for the call, and its arguments."""
        if self.ranges is None:
            return None
        found = self.ranges.find(args, kwargs, self._environments)
        if found is not None and (training := found[0].training) is not None and training.asked:
            for environment in self._environments:
                self._compile_backwards(environment)
            return None
        return found

    def enter_range(self, request: Request, program: RangeProgram) -> None:
        """Lets the program answer calls from now on, if its state still exists."""
        with self.lock:
            environment = request.environment
            if self._stands(request):
                if not any(each is program for each in environment.ranges):
                    environment.ranges.append(program)
                    self.newest = Assumptions.of(
                        request, self.target, program.specialized, program.symbols
                    )
                    # Calls that record gradients need autograd, which this C++ code does not use.
                    if config.verify != "always" and program.training is None:
                        environment.core.add_range(program.core)
                    self.totals.graphs += 1
                # Changes of dicts that the call took back do not count.
                environment.core.rearm(self.state().guards)

    def with_ranges(self) -> list[Specialized]:
        return [*self.all(), *(each.specialized for each in self.range_programs())]

    def range_programs(self) -> list[RangeProgram]:
        return [each for env in self._environments for each in env.ranges]

    def _compile_backwards(self, environment: Environment) -> None:
        """Compiles backwards from now on, since gradients of a program without one are wanted."""
        with self.lock:
            self._defers = False
            # The lists are replaced, since calls iterate over the old ones without the lock.
            environment.specializations = [*filter(is_whole, environment.specializations)]
            environment.ranges = [*filter(is_whole, environment.ranges)]

    def backward_is_wanted(self) -> None:
        """Gives every program a backward from now on."""
        if self._defers:
            self._defers = False
            for environment in self._environments:
                for each in environment.all():
                    if each.training is not None and each.training.backward is None:
                        each.training.asked = True

    @property
    def target(self) -> Any:
        return getattr(self.capture, "target", None)

    def may_defer(self) -> bool:
        """Whether no gradients are expected to be wanted: for a module in eval mode, until they
        are."""
        target = self.target
        return self._defers and isinstance(target, torch.nn.Module) and not target.training

    def all(self) -> list[Specialized]:
        return [each for env in self._environments for each in env.specializations]

    def reset(self) -> None:
        """Forgets all programs, and what was found out about calls."""
        with self.lock:
            self._forget()
            if (callable_ := self.callable()) is not None:
                callable_._arm([])
                callable_._run_eagerly((), False, False)

    def latest(self) -> Specialized:
        for specialized in reversed(self.with_ranges()):
            if specialized.build is not None:
                return specialized
        raise errors.Error("nothing has been compiled yet: call the function first")

    def arm(self) -> None:
        callable_ = self.callable()
        if callable_ is None:
            return
        callable_._arm([each.core for each in self._environments])
        if self.user_knows:
            full = self.given_up is not None
            none = none_has_gradients(self.with_ranges())
            callable_._run_eagerly(self.refused_types, full, none)

    def publish(self, environment: Environment, specialized: Specialized) -> None:
        if specialized.build is not None:
            self.totals.graphs += 1
        if specialized.wants_gradients and not record_in_cpp(specialized):
            return
        if config.verify != "always" or specialized.build is None:
            environment.core.add(specialized.core)

    def replace(self, found: Found, instead: Specialized) -> None:
        """Lets `instead` stand for the call from now on."""
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
            environment.may_pass = state.hooked and bool(self.all())
        environment.state = state
        environment.core.rearm(state.guards)
        # Once the user has been told, such calls need not come here any more.
        eager = self.user_knows and none_has_gradients(environment.all())
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
        """Lets programs of other states drop the modules' old tensors, too. They do not stand for
        calls until their state comes back."""
        for environment in self._environments:
            if environment.state.has_tensors(old):
                guards = _core.ObjectGuards()
                guards.expire()
                environment.state = Snapshot(environment.state.key, new, guards)
                environment.core.rearm(guards)
                environment.core.eager_while_grad([])
                self._rebind(environment, resolve)

    def _rebind(self, environment: Environment, resolve: Callable[[str], torch.Tensor]) -> None:
        """The same programs for the modules' present tensors."""
        rebound = [each.rebound(resolve) for each in environment.specializations]
        environment.specializations = rebound
        environment.ranges = [each.rebound(resolve) for each in environment.ranges]
        published = [
            each
            for each in rebound
            if each.verified and (not each.wants_gradients or record_in_cpp(each))
        ]
        always = config.verify == "always"
        environment.core.replace(
            [each.core for each in published if each.build is None or not always]
        )
        environment.core.clear_ranges()
        for program in environment.ranges:
            if program.training is None and not always:
                environment.core.add_range(program.core)

    def _compile(self, request: Request, apart: bool) -> Specialized:
        signature = request.signature
        try:
            if request.numbers.leaves:
                make = functools.partial(self._captured_and_compiled, request, apart)
                if (made := with_numbers(self.varying, request, make)) is not None:
                    return made
            return self._captured_and_compiled(request, apart)
        except HasEffects as why:
            self._states_with_effects += 1
            if self._states_with_effects == _MOST_STATES_WITH_EFFECTS:
                self.given_up = why
            made = declined(signature, why)
            # The second call finds what the first one sets up.
            made.transient = self._states_with_effects == 1
            return made
        except Heard as why:
            # A warning that is given once does not keep later calls from being compiled.
            self._times_heard += 1
            made = declined(signature, why)
            made.transient = self._times_heard == 1
            return made
        except ChangesArgument as why:
            self._changing.note(signature, why.reason)
            return declined(signature, why)
        except errors.CaptureError as why:
            return declined(signature, why)
        except (Abandoned, FillsObject):
            raise
        except errors.PassError as error:
            self.failed_pass = error
            return declined(signature, errors.CaptureError(str(error)))
        except Exception as error:
            return declined(signature, failure(error, self.target))

    def _captured_and_compiled(self, request: Request, apart: bool) -> Specialized:
        start = time.perf_counter()
        self.totals.captures += 1
        signature, gradients = request.signature, request.gradients
        try:
            captured = self._lengths.captured(self.capture, request)
        finally:
            whole = time.perf_counter() - start
            self.totals.capture_seconds += whole
        if self.ranges is not None and self.ranges.filled.begins(request, captured.filled, self):
            raise FillsObject
        if captured.grows and self.ranges is not None:
            if (reason := self.ranges.why_declined(request)) is not None:
                raise ChangesArgument(
                    f"the call makes an argument longer, and has no program for a range: {reason}"
                )
            if self.ranges.awaits_another(request):
                made = declined(signature, errors.CaptureError("an argument becomes longer"))
                made.transient = True
                return made
        taken = TakenNumbers.of(captured.numbers, request)
        if taken is not None:
            signature = taken.described(request.args, request.kwargs, captured.read)
        elif captured.read:
            signature = describe(request.args, request.kwargs, captured.read)
        seconds = {"capture": whole - captured.lower_seconds, "lower": captured.lower_seconds}
        deferred = gradients and self.may_defer()
        made = specialize_call(captured, signature, self.options, gradients, deferred, apart)
        made.numbers = taken
        self.totals.compile_seconds += made.seconds["build"]
        made.seconds = {**seconds, **made.seconds}
        self._changing.compiled(signature)
        remembered = Verified.find(made)
        if remembered is not None:
            remembered.apply(made)
        elif config.verify != "off":
            made.verified = False
        return made


_all: weakref.WeakSet[Programs] = weakref.WeakSet()


def _renew_in_child() -> None:
    """Another thread of the parent may have held the lock, and may have been compiling."""
    for programs in [*_all]:
        programs.lock = threading.RLock()
        programs.pending = ()


os.register_at_fork(after_in_child=_renew_in_child)
