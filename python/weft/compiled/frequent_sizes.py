# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that come so often, of those that a program for a range stands for, that a program of their
own pays.

A program for a range is one for the largest sizes (decision 50), and where its kernels do not leave
out what is padded, a call costs what one of the largest sizes does. C++ counts calls by their sizes
and tells of the ones that are often (SizeCounts.h). A program for them is made where it is expected
to take less time, and answers calls where it does.

Calls that record gradients go through Python, which counts what they spend on padding: where that
is as much as compiling costs, sizes get a program of their own, so that nobody spends more than
twice what he would have to.
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

MOST_PROGRAMS = 24  # of one state of the target
_LONG_AGO = 512  # answers of programs since the last call of one that another may take the place of
_EXPECTED = 1.1  # times the time of a program for the sizes, from which on one is made
_MEASURED = 1.05  # from which on it is kept
_LEAST_GAIN = 50e-6  # seconds a call: thousands of calls pay for a compilation
_MOST_IN_VAIN = 2  # programs of a range that were not kept
_REPEATS = 3
# Bytes a second that a thread reads from memory: round, and near those of server cores.
_BANDWIDTH = 24e9

# A contraction has two in its derivative.
_WITH_BACKWARD = 3
_MOST_COUNTED = 1024  # sizes of a range


def note_padding(program: RangeProgram, padded: tuple, seconds: float) -> None:
    """Notes what padding costs a call that records gradients. seconds: of its forward."""
    sizes, highs = _sizes_of(program, padded)
    if sizes in program.spent or len(program.spent) < _MOST_COUNTED:
        share = math.prod(size / high for size, high in zip(sizes, highs))
        spent = program.spent.get(sizes, 0.0)
        program.spent[sizes] = spent + _WITH_BACKWARD * seconds * (1 - share)


def own_program_of(face: Compiled, program: RangeProgram, padded: tuple, call: tuple) -> Any:
    """A program for the sizes of a call (args, kwargs) that records gradients, made where others
    of these sizes have spent as much on padding as it costs; else None."""
    if program.training is None or program.loops is not None or program.in_vain >= MOST_PROGRAMS:
        return None
    sizes, _ = _sizes_of(program, padded)
    parts = ("capture", "lower", "build")
    price = sum(program.specialized.seconds.get(each, 0.0) for each in parts)
    settings = face.settings
    if program.spent.get(sizes, 0.0) < price or settings.get("background"):
        return None
    program.spent[sizes] = -math.inf  # whatever comes of it
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
    """The sizes of a call, and the largest. padded: the arguments, which end with the sizes."""
    highs = [high for _, high in program.symbols.ranges]
    return tuple(padded[-1].tolist()[: len(highs)]), highs


def make_own_program(
    face: Compiled, core: _core.SizeRange, args: tuple, kwargs: dict[str, Any]
) -> None:
    """Has a program for the sizes of a call made, which the program of `core` has answered, and
    entered if it is faster. Where calls do not wait for compilations, beside them."""
    programs = face.programs
    program = next((each for each in programs.range_programs() if each.core is core), None)
    if program is None or programs.ranges is None or not _may_be_timed(face, program):
        return
    try:
        with Undisturbed():
            _make(face, program, args, kwargs)
    except Exception as error:  # a bug of ours costs speed, never the user's result
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
    """Whether a call may be made several times, and by a program that computes rows otherwise."""
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
    """A request for a program for the call's sizes alone."""
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
    """Whether there may be one more such program; the one that was called longest ago makes room if
    that is long ago."""
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
    """The time of the call over that of a program for its sizes. That is to the time of the largest
    sizes as the sizes are to these, but for the weights, which are read at any size."""
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
