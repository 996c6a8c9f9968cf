# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a program with eager execution, on one call.

The program computes its results first, out of place, then PyTorch runs the call; values, structure,
dtypes, strides, aliasing, writes, the state and the random numbers must agree.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import torch

from weft.capture.argument_changes import Before, Changed, collecting
from weft.capture.argument_objects import NO_COUNTERS, Counters, NoRecipe
from weft.capture.isolated import call_isolated
from weft.capture.python_random import GLOBAL, same_states, state_of
from weft.capture.signature import Declined, Signature, own_attributes
from weft.capture.snapshots import Snapshot
from weft.compiled.distances import (
    MOST_IN_FLOAT64,
    TOLERANCES,
    Exact,
    allowed_by,
    example_of,
    is_near,
)
from weft.compiled.marks import Mark
from weft.compiled.specialize import Effect, Specialized
from weft.compiled.unsaid_writes import UnsaidWrites
from weft.compiled.value_history import ValueHistory
from weft.compiled.value_pairs import Differs, pairs_of
from weft.frontend import interpreter
from weft.frontend.pairs import shown_real
from weft.frontend.random_rounding import RandomRounding, Spread, spreads_of
from weft.gradients.saved import random_state

if TYPE_CHECKING:
    from weft.compiled.training import Training


# Another thread may change something during a comparison, and a last bit may decide on a slope.
MOST_INCONCLUSIVE_CHECKS = 3


class Verdict(Enum):
    SAME = 0
    DIFFERENT = 1
    INCONCLUSIVE = 2  # something else changed meanwhile, or the program declined this call


@dataclass
class Finding:
    """reason: what differs, or None. layouts: by result, the strides and storage offset that eager
    execution gave to the user. is_explained: of an inconclusive one, whether rounding explains all
    that differs, so that another call may tell."""

    verdict: Verdict
    reason: str | None = None
    layouts: dict[int, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    is_explained: bool = False


class Unclear(Exception):
    """Nothing can be said from this call."""


class Check:
    """One call. The program computes it first; `conclude` compares once PyTorch has run it.

    inputs: of the graph, before the call. results: of the program. eager: PyTorch's counterpart of
    each. value: the call's result. writes_unsaid: whether undeclared writes happened.
    """

    def __init__(
        self,
        specialized: Specialized,
        signature: Signature,
        state: Snapshot,
        args: tuple,
        kwargs: dict[str, Any],
        counters: Counters = NO_COUNTERS,
    ) -> None:
        self._program = specialized
        self._signature = signature
        self._state = state
        self._objects = [Before(value, counters) for value, _ in signature.objects]
        self._generators = [(each, state_of(each)) for each in (*GLOBAL, *state.generators)]
        wiring = specialized.wiring
        self._sources = [self._tensor(source) for source in wiring.sources()]
        self._histories = [each.grad_fn for each in self._sources]
        self._targets = [(self._target(each), each) for each in wiring.effects()]
        seen = {id(each): each for each in (*signature.examples, *state.tensors, *self._sources)}
        self._marks = [Mark(tensor) for tensor in seen.values()]
        self.inputs = [
            shown_real(each.clone() if self._is_written(each) else each) for each in self._sources
        ]
        self._known = seen
        self._references: dict[int, Exact] = {}
        self.eager: dict[int, torch.Tensor] = {}
        self._run(args, kwargs)

    @property
    def training(self) -> Training | None:
        """What computes gradients, if the call records them."""
        return self._program.training

    @property
    def ran(self) -> bool:
        """Whether the program has computed the call, and not refused it."""
        return bool(self._ran)

    @property
    def results(self) -> list[torch.Tensor]:
        return self._results

    @property
    def laid_out(self) -> list[torch.Tensor]:
        """The results as the user gets them."""
        return self._laid_out

    @property
    def slots(self) -> Sequence[torch.Tensor]:
        """The tensors among the arguments."""
        return self._signature.examples

    @property
    def originals(self) -> list[torch.Tensor]:
        """The tensors of the call that the program reads, as eager execution has them."""
        return self._sources

    def as_computed(self, number: int, cotangent: torch.Tensor) -> torch.Tensor:
        """The cotangent of a result of eager execution, in the form that the program takes."""
        return cotangent

    def as_seen(
        self, gradients: Sequence[torch.Tensor | None], inputs: Sequence[int]
    ) -> list[torch.Tensor | None]:
        """Gradients computed by the program, in eager execution's form. inputs: their numbers among
        `originals`."""
        return [*gradients]

    @property
    def histories(self) -> list[torch.autograd.graph.Node | None]:
        """The node of autograd that each of `originals` had before the call."""
        return self._histories

    @property
    def random_state(self) -> torch.Tensor | None:
        """The state of PyTorch's generator before the call; None if the program does not draw."""
        if self._drawn is None:
            return None
        return next(state for each, state in self._generators if each is torch.default_generator)

    def _tensor(self, source: int | torch.Tensor) -> torch.Tensor:
        return self._signature.examples[source] if isinstance(source, int) else source

    def _target(self, effect: Effect) -> torch.Tensor:
        """What eager execution writes to."""
        return self._tensor(effect.target)

    def _written(self, effect: Effect) -> torch.Tensor:
        """What the program would write."""
        return self._results[effect.result]

    def _is_written(self, tensor: torch.Tensor) -> bool:
        storages = {_storage(target) for target, _ in self._targets}
        return _storage(tensor) in storages

    def _run(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Runs the program with a copy of the generator, in a child process if it draws."""
        core = self._program.core
        self._drawn: Any = None

        def evaluate() -> tuple:
            with collecting() as given:
                return (*core.evaluate(args, kwargs), given)

        taken = UnsaidWrites(self._program, self._sources)
        if not self._program.draws:
            outcome = evaluate()
        else:
            known = {**self._state.reached, **self._known}
            outcome, self._drawn = call_isolated(lambda: (evaluate(), torch.get_rng_state()), known)
        self._ran, self._value, self._results, self._laid_out, self._given = outcome
        self.writes_unsaid = taken.put_back()

    def conclude(
        self, expected: Any, unchanged: Callable[[], str | None], again: Callable[[], Any]
    ) -> Finding:
        """Compares. expected: PyTorch's result. unchanged: says why Python's state has changed.
        again: repeats the call."""
        finding = Finding(Verdict.SAME)
        self.value = expected
        try:
            if self.writes_unsaid:
                raise Differs("an operator writes to what its schema does not name")
            if not self._ran:
                raise Unclear(self._value)
            self._compare_writes()
            pairs = list(pairs_of(expected, self._value, "the result"))
            pairs += self._changed_pairs()
            self._compare_aliases(pairs)
            if self._program.training is None:
                _compare_requires(pairs)
            pairs = [self._real_pair(*pair) for pair in pairs]
            finding.layouts = self._compare_layouts(pairs)
            self._compare_values(pairs)
            self._compare_generators(again)
            if (reason := unchanged()) is not None:
                raise Unclear(reason)
        except Differs as why:
            finding.verdict, finding.reason = Verdict.DIFFERENT, str(why)
        except (Unclear, Declined) as why:
            finding.verdict, finding.reason = Verdict.INCONCLUSIVE, str(why)
        return finding

    # Writes.

    def _compare_writes(self) -> None:
        for mark in self._marks:
            if mark.moved():
                raise Differs("eager execution gives a tensor another shape, strides or memory")
            if mark.written() and not self._is_written(mark.tensor):
                raise Differs("eager execution writes to a tensor that the program leaves alone")
        for example in self._signature.examples:
            if own_attributes(example):
                raise Differs("eager execution sets attributes of an argument")
        for target, effect in self._targets:
            self._compare_values([(target, self._written(effect), "what is written")])

    def _changed_pairs(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, str]]:
        """The tensors that objects among the arguments are given."""
        given: list[torch.Tensor] = []
        try:
            changes = tuple(each.changes(given) for each in self._objects)
        except NoRecipe as why:
            raise Differs(f"eager execution changes an argument to hold {why}") from None
        wiring = self._program.wiring
        assert wiring is not None
        structure = wiring.structure
        own = structure.context if structure.type is Changed else ((),) * len(changes)
        if changes != own:
            raise Differs("eager execution changes attributes of an argument otherwise")
        yield from pairs_of(given, self._given, "what an argument is given")

    def _compare_aliases(self, pairs: list) -> None:
        inputs = {_storage(mark.tensor) for mark in self._marks}
        first: dict[tuple, int] = {}
        mirrored: dict[tuple, int] = {}
        for number, (eager, own, name) in enumerate(pairs):
            if (id(eager) in self._known or id(own) in self._known) and eager is not own:
                raise Differs(f"{name} is an argument or weight itself on one side alone")
            if self._drawn is not None or eager.numel() == 0:
                continue
            if _storage(eager) in inputs or _storage(own) in inputs:
                if eager.data_ptr() != own.data_ptr():
                    raise Differs(f"{name} shares memory with an argument or weight")
            elif first.setdefault(_storage(eager), number) != mirrored.setdefault(
                _storage(own), number
            ):
                raise Differs(f"{name} shares memory with another result")

    def _real_pair(
        self, eager: torch.Tensor, own: torch.Tensor, name: str
    ) -> tuple[torch.Tensor, torch.Tensor, str]:
        """The pair as the program computes it: complex numbers have a last dimension of two."""
        if not eager.is_complex() or eager is own:
            return eager, own, name
        if eager.is_conj() != own.is_conj():
            raise Differs(f"{name} is lazily conjugated on one side alone")
        if eager.is_conj():
            eager, own = eager.conj(), own.conj()
        places = {each.data_ptr(): each for each in self._laid_out}
        return shown_real(eager), places.get(own.data_ptr(), shown_real(own)), name

    def _compare_layouts(self, pairs: list) -> dict[int, tuple[tuple[int, ...], int]]:
        """Compares the layouts that the program determines itself with those of eager execution."""
        numbers = {id(each): number for number, each in enumerate(self._laid_out)}
        layouts: dict[int, tuple[tuple[int, ...], int]] = {}
        for eager, own, name in pairs:
            number = numbers.get(id(own))
            if number is not None:
                layouts[number] = (eager.stride(), eager.storage_offset())
                self.eager[number] = eager
            elif eager.stride() != own.stride():
                raise Differs(f"{name} has strides {own.stride()}, not {eager.stride()}")
        return layouts

    def _compare_generators(self, again: Callable[[], Any]) -> None:
        for generator, before in self._generators:
            drawn = self._drawn if generator is torch.default_generator else None
            if same_states(state_of(generator), before if drawn is None else drawn):
                continue
            which = type(generator).__qualname__
            if drawn is not None:
                raise Unclear(f"another thread draws from a {which} meanwhile")
            known = {**self._state.reached, **self._known}
            if call_isolated(lambda generator=generator: _draws(generator, again), known):
                raise Differs(f"eager execution draws random numbers from a {which}")

    # Values.

    def _compare_values(self, pairs: list[tuple[torch.Tensor, torch.Tensor, str]]) -> None:
        far = [pair for pair in pairs if self._is_far(*pair)]
        if not far:
            return
        if self._program.build.options.precision != "float32":
            raise Differs(f"{far[0][2]} differs: {example_of(*far[0][:2])}")
        exact = self._references = self._references or self._exact()
        for eager, own, name in far:
            reference = exact.get(id(own))
            if reference is None or not reference.excuses(eager, own):
                raise Differs(f"{name} differs: {example_of(eager, own)}")

    def _is_far(self, eager: torch.Tensor, own: torch.Tensor, name: str) -> bool:
        """Whether the values differ. Raises: Differs, if no rounding can explain it."""
        if eager is own or eager.numel() == 0:
            return False
        if not (eager.is_floating_point() or eager.is_complex()):
            if not torch.equal(eager, own):
                raise Differs(f"{name} differs: {example_of(eager, own)}")
            return False
        if torch.equal(eager, own):
            return False
        allowed = allowed_by(self._program.build.options.precision)
        tolerance = max(TOLERANCES.get(eager.dtype, 0.0), allowed)
        return not is_near(eager, own, tolerance)

    def _exact(self) -> dict[int, Exact]:
        """The results in float64, by the address of the program's own results."""
        document = json.loads(self._program.lowered.graph)
        try:
            with torch.no_grad(), random_state(self.random_state):
                values = interpreter.run_nodes(document, self.inputs, double=True)
            with torch.no_grad(), random_state(self.random_state):
                rounded = interpreter.run_nodes(document, self.inputs)
        except Exception as error:  # for an op without a float64 kernel
            raise Differs(f"values differ, and float64 has no say: {error}") from None
        history = ValueHistory(document, values)
        spreads = functools.cache(lambda: self._spreads(document))
        results = [
            Exact(
                values[number],
                rounded[number],
                history.magnitude_ahead_of(number),
                history.magnitude_added_up(number),
                history.coarsest_of(number),
                lambda place=place: spreads()[place],
            )
            for place, number in enumerate(output["value"] for output in document["outputs"])
        ]
        # Values that a forward program saves follow the graph's results.
        own = [*self._results[: len(results)], *self._laid_out[: len(results)]]
        return {id(each): result for each, result in zip(own, results + results, strict=True)}

    def _spreads(self, document: dict[str, Any]) -> list[Spread | None]:
        """What rounding does to each of the graph's results. Raises: Differs, if the graph cannot
        be run so."""

        def compute(rounding: RandomRounding | None) -> list[torch.Tensor]:
            with torch.no_grad(), random_state(self.random_state):
                values = interpreter.run_nodes(document, self.inputs, rounding=rounding)
            return [values[output["value"]] for output in document["outputs"]]

        try:
            return spreads_of(compute, MOST_IN_FLOAT64)
        except Exception as error:  # what is rounded may not be an index, for instance
            raise Differs(f"values differ, and random rounding has no say: {error}") from None


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _compare_requires(pairs: list[tuple[torch.Tensor, torch.Tensor, str]]) -> None:
    """Compares which results require gradients, for a call that records none but may ask for it."""
    for eager, own, name in pairs:
        if eager is not own and eager.requires_grad != own.requires_grad:
            raise Differs(f"{name} requires gradients on one side alone")


def _draws(generator: Any, call: Callable[[], Any]) -> bool:
    """Whether the call draws random numbers; in a child process, where no other thread draws."""
    before = state_of(generator)
    call()
    return not same_states(state_of(generator), before)
