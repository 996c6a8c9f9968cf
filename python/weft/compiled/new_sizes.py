# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of sizes that are within a program's range, but other than those at which its Python loops
were traced.

The user's code may decide differently at each step. So the call is traced at each new size, and if
the trace equals the program up to sizes, the program stands for the size from then on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weft import errors
from weft.capture.argument_objects import NO_COUNTERS
from weft.capture.sizes_of_loops import Sizes, SizesOfLoops
from weft.capture.tracing import attempted
from weft.compiled.flat_calls import FlatCall

if TYPE_CHECKING:
    from weft.compiled.programs import Programs
    from weft.compiled.ranges import RangeProgram
    from weft.compiled.requests import Request


@dataclass
class NewSizes:
    """New sizes of a call, and the program that now stands for them, too."""

    loops: SizesOfLoops
    sizes: Sizes

    def withdraw(self) -> None:
        """Excludes the sizes, which have a program of their own from now on."""
        self.loops.guard.exclude(self.sizes)


def program_for(programs: Programs, request: Request) -> tuple[RangeProgram | None, bool]:
    """The program that stands for such calls from now on, if any, and whether there is a program
    whose range includes these sizes, so that no other should be made for a range."""
    call = FlatCall.of(request.args, request.kwargs)
    if call is None:
        return None, False
    for program in request.environment.ranges:
        loops = program.loops if program.specialized.wants_gradients == request.gradients else None
        sizes = None if loops is None else loops.sizes_of(call.leaves)
        if loops is None or sizes is None:
            continue
        if sizes in loops.guard.failed:
            return None, True
        if not _matches(program, loops, sizes, request):
            continue
        if _is_same(programs, loops, sizes, request):
            request.new_sizes = NewSizes(loops, sizes)
            return program, True
        loops.guard.exclude(sizes)
        return None, True
    return None, False


def _matches(program: RangeProgram, loops: SizesOfLoops, sizes: Sizes, request: Request) -> bool:
    """Whether the program would stand for the call if these sizes were among its own."""
    with loops.guard.supposing(sizes):
        padded = program.arguments(request.args, request.kwargs)
        return padded is not None and program.specialized.core.matches(padded, {})


def _is_same(programs: Programs, loops: SizesOfLoops, sizes: Sizes, request: Request) -> bool:
    start = time.perf_counter()
    programs.totals.captures += 1
    call = (request.args, request.kwargs, request.references, request.state, request.signature)
    try:
        settings = (request.gradients, request.wanted, NO_COUNTERS, request.numbers)
        trace = programs.capture.trace_of(*call, *settings)
        return loops.admits(sizes, attempted(replace(trace, drafts=True)))
    except errors.CaptureError:
        return False
    finally:
        programs.totals.capture_seconds += time.perf_counter() - start
