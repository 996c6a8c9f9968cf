# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The derivative of a scan, which is a scan that runs backwards.

Of T steps the first b are those of `init`. Step s of the derivative computes the gradient of the
results' step T - 1 + b - s: the gradient that is given for that step, plus what later steps, which
have been computed before, contribute through the updates. Its own first b steps, which correspond
to steps after the last one, are zeros. The gradients of everything else that the updates read
follow from those of the results, for all steps together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.te import dtypes, functions
from weft.te import expressions as ex
from weft.te.derivatives import fresh, loads_of, made_of, terms_of, total_of
from weft.te.expressions import Axis, Const, Expr, Load, Reduce, arithmetic, compared
from weft.te.scans import Scan, first_steps, scan, steps_back
from weft.te.tensors import Operation, Tensor, in_order

Add = Callable[[Tensor, list[Tensor]], None]


def through_scan(made: Scan, seeds: dict[Tensor, list[Tensor]], add: Add) -> None:
    """Adds the gradients of what the scan reads. seeds: the given gradients of the results. add: a
    function that adds terms to the gradient of a tensor that the scan reads."""
    backwards = _Backwards(made, {each: seeds[each] for each in made.results})
    of_results = backwards.of_results()
    for init, result in zip(made.init, made.results):
        if result in of_results:
            axes = fresh(init)
            add(init, [made_of(f"d_{init.name}", axes, Load(of_results[result], tuple(axes)))])
    backwards.of_inputs(of_results, add)


class _Backwards:
    def __init__(self, made: Scan, seeds: dict[Tensor, list[Tensor]]) -> None:
        self.made, self.begin = made, made.begin
        self.steps = made.state[0].shape[0]
        self._stand_ins: dict[Tensor, Tensor] = {}
        self.seeds = {each: total_of(each, terms) for each, terms in seeds.items()}
        # The tensors that the scan computes, and those that only they read, for all steps, with
        # zeros in the first ones. They read results instead of states.
        self.whole: dict[Tensor, Tensor] = {}
        results = dict(zip(made.state, made.results))
        inside = first_steps(in_order(made.results), made.results)
        for tensor in in_order(made.update):
            if tensor in inside and tensor not in made.results:
                self.whole[tensor] = self._whole(tensor, {**results, **self.whole})

    def _whole(self, member: Tensor, moved: dict[Tensor, Tensor]) -> Tensor:
        body = member.op.body
        assert body is not None
        is_later = compared("ge", member.op.axis[0], self.begin)

        def guarded(value: Expr) -> Expr:
            zero = Const(0.0 if dtypes.is_float(value.dtype) else 0, value.dtype)
            return ex.Select(is_later, _redirected(value, moved), zero)

        if isinstance(body, Reduce):
            body = body.over(tuple(guarded(each) for each in body.values), body.axes)
        else:
            body = guarded(body)
        return made_of(member.name, list(member.op.axis), body)

    def of_results(self) -> dict[Tensor, Tensor]:
        """The gradients of the results that are floats, for all steps."""
        made = self.made
        floats = [each for each in made.results if dtypes.is_float(each.dtype)]
        shape = {each: (self.steps + self.begin, *each.shape[1:]) for each in floats}
        states = {
            each: Tensor(shape[each], each.dtype, _placeholder(f"d_{each.name}_state"))
            for each in floats
        }
        updates = self._updates(floats, states)
        first = [
            made_of(
                f"d_{each.name}_end",
                _axes((self.begin, *each.shape[1:])),
                Const(0.0, each.dtype),
            )
            for each in floats
        ]
        name = f"d_{made.results[0].name}"
        found: Any = scan(first, updates, [states[each] for each in floats], name=name)
        found = [found] if isinstance(found, Tensor) else found
        gradients = {}
        for result, run in zip(floats, found):
            axes = fresh(result)
            place = (self._turned(axes[0]), *axes[1:])
            gradients[result] = made_of(f"d_{result.name}_all", axes, Load(run, place))
        return gradients

    def _turned(self, step: Expr) -> Expr:
        """The step of one direction that corresponds to a step of the other."""
        return arithmetic("sub", arithmetic("add", self.steps, self.begin - 1), step)

    def _updates(self, floats: list[Tensor], states: dict[Tensor, Tensor]) -> list[Tensor]:
        terms: dict[Tensor, list[Tensor]] = {each: [] for each in floats}
        backs = {
            steps_back(member, load)
            for member, body in self._bodies()
            for each in self.made.results
            for load in loads_of(body, each)
        }
        for back in sorted(each for each in backs if each is not None):
            handed = self._handed_back(back, states)
            for member, whole in self.whole.items():
                for result in floats:
                    for number, term in enumerate(self._of_load(member, whole, result, back)):
                        name = f"d_{result.name}_{member.name}_{back}_{number}"
                        terms[result].append(self._at_step(name, term, 0, {whole: handed[member]}))
        updates = []
        for result in floats:
            axes = _axes((self.steps + self.begin, *result.shape[1:]))
            seed: Expr = Load(self.seeds[result], (self._turned(axes[0]), *axes[1:]))
            zero = Const(0.0, result.dtype)
            seed = ex.Select(compared("ge", axes[0], self.begin), seed, zero)
            for term in terms[result]:
                seed = arithmetic("add", seed, Load(term, tuple(axes)))
            updates.append(made_of(f"d_{result.name}_step", axes, seed))
        return updates

    def _bodies(self) -> list[tuple[Tensor, Expr]]:
        return [(whole, value) for whole in self.whole.values() for value in _values(whole)]

    def _of_load(self, member: Tensor, whole: Tensor, result: Tensor, back: int) -> list[Tensor]:
        """The terms from reading `result` the given number of steps before."""
        if not dtypes.is_float(whole.dtype):
            return []
        loads = [load for value in _values(whole) for load in loads_of(value, result)]
        terms = terms_of(whole, self._upstream(whole), result)
        return [t for load, t in zip(loads, terms) if steps_back(whole, load) == back]

    def _upstream(self, whole: Tensor) -> Tensor:
        """A placeholder for the gradient of a member, for all steps."""
        if whole not in self._stand_ins:
            op = _placeholder(f"d_{whole.name}_any")
            self._stand_ins[whole] = Tensor(whole.shape, whole.dtype, op)
        return self._stand_ins[whole]

    def _handed_back(self, back: int, states: dict[Tensor, Tensor]) -> dict[Tensor, Tensor]:
        """The gradients of the members for each step, the given number of steps later."""
        handed: dict[Tensor, Tensor] = {}
        results = dict(zip(self.made.update, self.made.results))
        of_members = {whole: member for member, whole in self.whole.items()}
        terms: dict[Tensor, list[Tensor]] = {member: [] for member in self.whole}
        for member, whole in reversed(self.whole.items()):
            axes = _axes((self.steps + self.begin, *member.shape[1:]))
            later = arithmetic("add", self._turned(axes[0]), back)
            total: Expr = Const(0.0, member.dtype if dtypes.is_float(member.dtype) else "float32")
            state = states.get(results[member]) if member in results else None
            if state is not None:
                place = (arithmetic("sub", axes[0], back), *axes[1:])
                total = arithmetic("add", total, Load(state, place))
            for term in terms[member]:
                total = arithmetic("add", total, Load(term, tuple(axes)))
            total = ex.Select(self._is_computed(later), total, Const(0.0, total.dtype))
            handed[member] = made_of(f"d_{member.name}_{back}", axes, total)
            if not dtypes.is_float(whole.dtype):
                continue
            for source in whole.op.input_tensors:
                reader = of_members.get(source)
                if reader is None or not dtypes.is_float(source.dtype):
                    continue
                for number, term in enumerate(terms_of(whole, self._upstream(whole), source)):
                    name = f"d_{source.name}_{whole.name}_{back}_{number}"
                    there = {whole: handed[member]}
                    terms[reader].append(self._at_step(name, term, back, there))
        return handed

    def _is_computed(self, step: Expr) -> Expr:
        """A condition that an update computes that step."""
        return functions.all(compared("ge", step, self.begin), compared("lt", step, self.steps))

    def _at_step(self, name: str, term: Tensor, back: int, handed: dict[Tensor, Tensor]) -> Tensor:
        """A term for all steps as one for the steps of the backward scan. handed: the gradients of
        the members that it reads, which are at that step already."""
        axes = _axes((self.steps + self.begin, *term.shape[1:]))
        step = self._turned(axes[0])
        step = arithmetic("add", step, back) if back else step
        places = dict(zip(term.op.axis, (step, *axes[1:])))
        upstream = {self._upstream(whole): each for whole, each in handed.items()}

        def change(node: Expr) -> Expr | None:
            if isinstance(node, Axis):
                return places.get(node)
            if isinstance(node, Load) and node.tensor in upstream:
                rest = (ex.transformed(each, change) for each in node.indices[1:])
                return Load(upstream[node.tensor], (axes[0], *rest))
            return None

        def valid(value: Expr) -> Expr:
            inner = ex.transformed(value, change)
            if not back:
                return inner
            return ex.Select(self._is_computed(step), inner, Const(0.0, inner.dtype))

        body = term.op.body
        assert body is not None
        if isinstance(body, Reduce):
            return made_of(name, axes, body.over(tuple(map(valid, body.values)), body.axes))
        return made_of(name, axes, valid(body))

    def of_inputs(self, of_results: dict[Tensor, Tensor], add: Add) -> None:
        """Adds the gradients of what the updates read, for all steps together."""
        inner = {*self.whole.values(), *self.made.results}
        terms: dict[Tensor, list[Tensor]] = {whole: [] for whole in self.whole.values()}
        for update, result in zip(self.made.update, self.made.results):
            if result not in of_results:
                continue
            axes = fresh(result)
            gradient: Expr = Load(of_results[result], tuple(axes))
            is_later = compared("ge", axes[0], self.begin)
            masked = ex.Select(is_later, gradient, Const(0.0, result.dtype))
            term = made_of(f"d_{update.name}_later", axes, masked)
            if update in self.whole:
                terms[self.whole[update]].append(term)
            else:
                add(update, [term])
        for whole in reversed(self.whole.values()):
            if not terms[whole] or not dtypes.is_float(whole.dtype):
                continue
            gradient = total_of(whole, terms[whole])
            for source in whole.op.input_tensors:
                if not dtypes.is_float(source.dtype) or source in self.made.results:
                    continue
                found = terms_of(whole, gradient, source)
                if source in inner:
                    terms[source] += found
                else:
                    add(source, found)


def _values(tensor: Tensor) -> tuple[Expr, ...]:
    body = tensor.op.body
    assert body is not None
    return body.values if isinstance(body, Reduce) else (body,)


def _axes(shape: tuple[Any, ...]) -> list[Axis]:
    return [Axis(size, f"i{dim}", "spatial") for dim, size in enumerate(shape)]


def _placeholder(name: str) -> Operation:
    return Operation(name, (), None)


def _redirected(value: Expr, moved: dict[Tensor, Tensor]) -> Expr:
    def change(node: Expr) -> Expr | None:
        if isinstance(node, Load) and node.tensor in moved:
            indices = tuple(ex.transformed(each, change) for each in node.indices)
            return Load(moved[node.tensor], indices)
        return None

    return ex.transformed(value, change)
