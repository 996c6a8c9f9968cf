# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are so frequent, among those that a program for a range stands for, that a program of
their own is worthwhile.

A program for a range is compiled for the largest sizes (decision 50). Unless its kernels leave out
padding, a call costs as much as one of the largest sizes. C++ counts calls by their sizes and
reports frequent ones (SizeCounts.h). A program for these is made if it is expected to take less
time, and used if it does.

Calls that record gradients go through Python, which adds up the time that they spend on padding.
Once that equals the time of compiling, the sizes get a program of their own, so that at most twice
the least possible time is spent.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from weft import _core, config, errors
from weft.capture import isolated
from weft.capture.callable_face import Undisturbed
from weft.capture.signature import Declined
from weft.compiled import background
from weft.compiled.checkpoints import nothing_counted
from weft.compiled.flat_calls import FlatCall
from weft.frontend.sizes.quotients import with_quotients

if TYPE_CHECKING:
    from weft.compiled.compiled import Compiled
    from weft.compiled.programs import Programs
    from weft.compiled.ranges import RangeProgram
    from weft.compiled.requests import Environment, Request
    from weft.compiled.specialize import Specialized

MOST_PROGRAMS = 24  # for one state of the target
_LONG_AGO = 512  # calls since the last one of a program that may be replaced
_EXPECTED = 1.1  # a program is made if it is expected to be faster by this factor
_MEASURED = 1.05  # a program is kept if it is faster by this factor
_LEAST_GAIN = 50e-6  # seconds for each call: thousands of calls make up for a compilation
_MOST_IN_VAIN = 2  # programs of a range that were not kept
_REPEATS = 3
# Bytes per second that a thread reads from memory: a round number for cores of servers.
_BANDWIDTH = 24e9

# A contraction has two contractions in its derivative.
_WITH_BACKWARD = 3
_MOST_COUNTED = 1024  # sizes of a range


def note_padding(program: RangeProgram, padded: tuple, seconds: float) -> None:
    """Adds up what padding costs calls that record gradients. seconds: of this call's forward."""
    sizes, highs = _sizes_of(program, padded)
    if sizes in program.spent or len(program.spent) < _MOST_COUNTED:
        share = math.prod(size / high for size, high in zip(sizes, highs))
        spent = program.spent.get(sizes, 0.0)
        program.spent[sizes] = spent + _WITH_BACKWARD * seconds * (1 - share)


def own_program_of(face: Compiled, program: RangeProgram, padded: tuple, call: tuple) -> Any:
    """A program for the sizes of a call (args, kwargs) that records gradients. It is made once
    calls of these sizes have spent as much time on padding as compiling takes; otherwise None."""
    if program.training is None or program.loops is not None or program.in_vain >= MOST_PROGRAMS:
        return None
    sizes, _ = _sizes_of(program, padded)
    parts = ("capture", "lower", "build")
    price = sum(program.specialized.seconds.get(each, 0.0) for each in parts)
    settings = face.settings
    if program.spent.get(sizes, 0.0) < price or settings.get("background"):
        return None
    program.spent[sizes] = -math.inf  # so that it is not made again
    program.in_vain += 1
    if not settings.get("automatic") or settings.get("batch_invariant"):
        return None
    try:
        with nothing_counted():
            found = face.programs.find(*call)
    except (Declined, errors.SizeError):
        return None
    return found if found.specialized.reason is None else None


def _sizes_of(program: RangeProgram, padded: tuple) -> tuple[tuple[int, ...], list[int]]:
    """The sizes of a call, and the largest ones. padded: the arguments, which end with the
    sizes."""
    highs = [high for _, high in program.symbols.ranges]
    return tuple(padded[-1].tolist()[: len(highs)]), highs


def make_own_program(
    face: Compiled, core: _core.SizeRange, args: tuple, kwargs: dict[str, Any]
) -> None:
    """Makes a program for the sizes of a call that the program of `core` has answered, and enters
    it if it is faster. If calls do not wait for compilations, it is made in the background."""
    programs = face.programs
    program = next((each for each in programs.range_programs() if each.core is core), None)
    if program is None or programs.ranges is None or not _may_be_timed(face, program):
        return
    try:
        with Undisturbed():
            _make(face, program, args, kwargs)
    except Exception as error:  # a fault of the compiler costs speed, never the user's result
        program.in_vain = _MOST_IN_VAIN
        reason = f"sizes that come often: {type(error).__name__}: {error}"
        programs.ranges.declined["often", program.shapes] = reason


def _make(face: Compiled, program: RangeProgram, args: tuple, kwargs: dict[str, Any]) -> None:
    programs = face.programs
    found = _request(programs, args, kwargs)
    if found is None or not _makes_room(found.environment):
        return
    if _expected_gain(program, args, kwargs) < _EXPECTED:
        return

    def pays(made: Specialized) -> bool:
        return _pays(program, made, args, kwargs)

    if face.settings.get("background"):
        background.submit(face, found, pays)
        return
    with programs.lock:
        background.Job(weakref.ref(face), found, pays).run(lambda: False, 0)


def _may_be_timed(face: Compiled, program: RangeProgram) -> bool:
    """Whether a call may be repeated, and may be answered by a program that computes rows
    otherwise."""
    return (
        config.verify != "always"
        and not face.settings.get("batch_invariant")
        and bool(face.settings.get("automatic"))
        and not isolated.in_child()
        and not program.counters
        and program.loops is None
        and not program.written()
        and program.in_vain < _MOST_IN_VAIN
    )


def _request(programs: Programs, args: tuple, kwargs: dict[str, Any]) -> Request | None:
    """A request for a program for exactly the call's sizes."""
    from weft.compiled.requests import Request

    flat = FlatCall.of(args, kwargs)
    if flat is None or flat.objects:
        return None
    try:
        with nothing_counted():
            found = programs.look_up(args, kwargs, for_sizes=False)
    except (Declined, errors.SizeError):
        return None
    return found if isinstance(found, Request) and not found.gradients else None


def _makes_room(environment: Environment) -> bool:
    """Whether one more such program may be made. The one that was called longest ago is dropped for
    it, if that is long ago."""
    own = [each for each in environment.specializations if each.is_of_range]
    if len(own) < MOST_PROGRAMS:
        return True
    oldest = min(own, key=lambda each: each.core.last_use)
    if max(each.core.last_use for each in own) - oldest.core.last_use < _LONG_AGO:
        return False
    environment.specializations = [e for e in environment.specializations if e is not oldest]
    environment.core.remove(oldest.core)
    return True


def _expected_gain(program: RangeProgram, args: tuple, kwargs: dict[str, Any]) -> float:
    """The expected factor between the time of the call and that of a program for its sizes. The
    latter is proportional to the sizes, except for the weights, which are read for any size."""
    symbols = program.symbols
    highs = [high for _, high in symbols.ranges]
    padded = program.core.padded(args, kwargs, fill=0.0)
    if padded is None or not all(each.holds(highs) for each in symbols.guards):
        return 0.0
    largest = (*padded[:-1], torch.tensor(with_quotients(highs, symbols.quotients)))
    call = program.specialized.core.call
    here, most = _least_seconds(lambda: call(padded, {}), lambda: call(largest, {}))
    share = math.prod(size / high for size, high in zip(padded[-1].tolist(), highs))
    own = max(most * share, _weight_bytes(program) / (_BANDWIDTH * torch.get_num_threads()))
    return here / own if here - own >= _LEAST_GAIN else 0.0


def _pays(program: RangeProgram, made: Specialized, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether a program for the call's sizes is faster."""

    def ranged() -> Any:
        padded = program.core.padded(args, kwargs)
        return (False, None) if padded is None else program.specialized.core.call(padded, {})

    own, here = _least_seconds(lambda: made.core.call(args, kwargs), ranged)
    if here >= _MEASURED * own:
        return True
    program.in_vain += 1
    return False


def _least_seconds(*calls: Callable[[], tuple[bool, Any]]) -> list[float]:
    """The least time of each call in several alternating runs; infinite if it cannot run."""
    least = [math.inf] * len(calls)
    for _ in range(_REPEATS):
        for number, call in enumerate(calls):
            start = time.perf_counter()
            try:
                ran, _ = call()
            except (errors.Error, IndexError, RuntimeError, ValueError):
                ran = False
            if ran:
                least[number] = min(least[number], time.perf_counter() - start)
    return least


def _weight_bytes(program: RangeProgram) -> int:
    wiring = program.specialized.wiring
    assert wiring is not None
    tensors = {id(each): each for each in wiring.sources() if isinstance(each, torch.Tensor)}
    return sum(each.numel() * each.element_size() for each in tensors.values())
