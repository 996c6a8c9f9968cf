# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands behind a callable whose programs are captured by observing the interpreter.

A call that no program stands for runs in the interpreter, observed. Its program is published if a
replay of it gives the same result at once, bit by bit; else the reason is kept and the call has
been an eager one.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, TextIO

import torch

from weft import _capture, _core, config, errors
from weft.capture.callable_face import Face
from weft.observe.declared import declare_all
from weft.observe.sameness import difference
from weft.observe.snapshot import Memory

# Programs of a callable, and captures in a row that published none, after which calls run eagerly.
MOST_PROGRAMS = 8
MOST_FAILURES = 4
# Captures in a row whose programs answered no call: something changes at each.
MOST_BARREN = 16


class Observed(Face):
    """The face of a callable whose calls are observed."""

    def __init__(self, original: Callable[..., Any], settings: dict[str, Any]) -> None:
        super().__init__(original, settings)
        self._programs: list[tuple[_Surroundings, Any, bool]] = []
        self._published = self._captures = self._hits = self._misses = self._failures = (
            self._barren
        ) = 0
        self._capture_seconds = self._verify_seconds = 0.0

    # What the C++ callable asks for.

    def _dispatch(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if _core.interposition_active():
            return self._eager("a mode, a transform or a tracer of torch is active", args, kwargs)
        for number, (around, program, random) in enumerate(self._programs):
            if around.hold():
                generators = torch.get_rng_state() if random else None
                found = program.run(args, kwargs)
                if found is False:
                    around.restore()
                    if generators is not None:
                        torch.set_rng_state(generators)
                if found:
                    self._hits += 1
                    self._barren = 0
                    if number:
                        self._programs.insert(0, self._programs.pop(number))
                    return found[0]
        # Where a value came out otherwise than in all programs, the call takes a path of its own.
        self._misses += 1
        if self._failures >= MOST_FAILURES or self._barren >= MOST_BARREN:
            return self.original(*args, **kwargs)
        return self._capture(_Surroundings(), args, kwargs)

    def _capture(self, around: _Surroundings, args: tuple, kwargs: dict[str, Any]) -> Any:
        declare_all()
        self._captures += 1
        self._barren += 1
        generators = torch.get_rng_state()
        start = time.perf_counter()
        value, program = _capture.observe(self.original, args, kwargs)
        self._capture_seconds += time.perf_counter() - start
        reason, location = program.reason, program.location
        if reason is None:
            start = time.perf_counter()
            reason = self._fault(program, around, generators, value, args, kwargs)
            self._verify_seconds += time.perf_counter() - start
        if reason is None:
            self._failures = 0
            self._published += 1
            random = not torch.equal(generators, torch.get_rng_state())
            self._programs.insert(0, (around, program, random))
            del self._programs[MOST_PROGRAMS:]
        else:
            self._failures += 1
            self._refuse(f"{reason} ({location})" if location else reason)
        return value

    def _fault(
        self,
        program: Any,
        around: _Surroundings,
        generators: torch.Tensor,
        value: Any,
        args: tuple,
        kwargs: dict[str, Any],
    ) -> str | None:
        """Why the program cannot be published, if it cannot."""
        if not around.hold():
            return "changes a setting of torch"
        if config.verify == "off":
            return None
        return _fault_of_replay(program, generators, value, args, kwargs)

    def declined(self, core: Any, reason: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self._eager(reason, args, kwargs)

    def _eager(self, reason: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        self._refuse(reason)
        return self.original(*args, **kwargs)

    def _refuse(self, reason: str) -> None:
        if self.settings.get("fullgraph"):
            raise errors.NotCompiledError(reason)
        first = not self.eager_reasons
        self.eager_reasons[reason] += 1
        if first:
            text = f"PyTorch runs this call: {reason}"
            warnings.warn(text, errors.WeftWarning, stacklevel=4)

    # What the user asks for.

    def reset(self) -> None:
        super().reset()
        self._programs.clear()
        self._failures = self._barren = 0

    def stats(self) -> dict[str, Any]:
        """graphs: programs published. breaks: why calls ran eagerly, each reason once. hits: calls
        that a program answered. misses: calls that none was ready for. captures: calls observed.
        capture_seconds: in observed calls, which give the user their results. verify_seconds: in
        replays that were compared with them."""
        return {
            "graphs": self._published,
            "breaks": list(self.eager_reasons),
            "hits": self._hits,
            "misses": self._misses,
            "captures": self._captures,
            "capture_seconds": self._capture_seconds,
            "compile_seconds": 0.0,
            "verify_seconds": self._verify_seconds,
        }

    def guards(self) -> list[str]:
        """What the latest program assumes, in the program's own terms: `K == 2.0`,
        `self._modules['0'] is …`. Raises: errors.Error, if there is none."""
        return self._latest().guards()

    def log(self) -> list[str]:
        """The operations of the latest program, each with the user's line. Raises: errors.Error,
        if there is none."""
        return self._latest().log()

    def why_miss(self, *args: Any, **kwargs: Any) -> str | None:
        """The guard of the latest program that this call does not meet; None if it meets all.
        Raises: errors.Error, if there is no program."""
        around = self._programs[0][0] if self._programs else None
        if around is not None and not around.hold():
            return "a setting of torch has changed"
        return self._latest().why_miss(args, kwargs)

    def report(self, file: TextIO | None = None) -> None:
        """Prints the log of each program, and why calls ran eagerly."""
        file = file or sys.stdout
        for _, program, _ in self._programs:
            print("\n".join(program.log()), file=file)
        for reason, count in self.eager_reasons.items():
            print(f"PyTorch ran {count} calls: {reason}", file=file)

    def _latest(self) -> Any:
        if not self._programs:
            raise errors.Error("nothing has been captured")
        return self._programs[0][1]


class _Surroundings:
    """torch's settings of a moment that decide what a program sees."""

    def __init__(self) -> None:
        self._guard = torch._C._dynamo.guards.GlobalStateGuard()
        self._inference = torch.is_inference_mode_enabled()
        self._grad = torch.is_grad_enabled()

    def restore(self) -> None:
        """Puts back what a replay may have set that did not come to its end."""
        torch._C._set_grad_enabled(self._grad)

    def hold(self) -> bool:
        return (
            self._guard.check()
            and torch.is_inference_mode_enabled() == self._inference
            and torch.is_grad_enabled() == self._grad
        )


def _fault_of_replay(
    program: Any, generators: torch.Tensor, value: Any, args: tuple, kwargs: dict[str, Any]
) -> str | None:
    """Replays the call from what was there ahead of it; leaves what the call has left."""
    ahead, grad = program.take_snapshots(), torch.is_grad_enabled()
    tensors = tuple(each.tensor for each in ahead if isinstance(each, Memory))
    left, generators_left = [each.again() for each in ahead], torch.get_rng_state()
    with torch.autograd._unsafe_preserve_version_counter(tensors):
        for each in reversed(ahead):
            each.restore()
        torch.set_rng_state(generators)
        missed = program.why_miss(args, kwargs)
        found = None if missed else program.rehearse(args, kwargs)
        replayed = [each.again() for each in ahead]
        same_numbers = torch.equal(torch.get_rng_state(), generators_left)
        for each in reversed(left):
            each.restore()
        torch.set_rng_state(generators_left)
    if missed is not None:
        return f"changes what it has read: {missed}"
    if not found:
        torch._C._set_grad_enabled(grad)
        return "an operation gives another result when it is run again"
    if not same_numbers:
        return "takes other random numbers when it is run again"
    if not all(x.agrees(y) for x, y in zip(left, replayed)):
        return "writes something else when it is run again"
    return difference(value, found[0])
