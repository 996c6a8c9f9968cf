# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns: rewrites declared by two functions, one that matches and one that replaces."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weft import errors
from weft.dialect.definitions import Definition
from weft.ir.elements import Syntax
from weft.ir.emission import Symbolic, attribute_data, caller
from weft.ir.module import Module
from weft.ir.remarks import Remark
from weft.ir.rewriting import Rewriter
from weft.ir.values import Operation, Value

# Each round goes over the whole module; a pattern that has not settled by then never will.
_MOST_ROUNDS = 64


class _Variable(Symbolic):
    """Stands for one value, the same wherever it occurs."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def type(self) -> Any:
        raise errors.IRError(
            f"a pattern's variable {self.name!r} has no type; say more in `where`, or use "
            "ops.dot_general in place of @"
        )

    def record(self, definition: Definition, operands: Any, attributes: Any) -> _Node:
        return _record(definition, operands, attributes)


class _Node(Symbolic):
    """An op of the pattern. attributes: those that it has to have; of others any will do."""

    def __init__(
        self, definition: Definition, operands: list[Any], attributes: dict[str, Any]
    ) -> None:
        self.definition = definition
        self.operands = operands
        self.attributes = attributes

    record = _Variable.record
    type = property(lambda self: _Variable(self.definition.name).type)


def _record(
    definition: Definition, operands: Sequence[Sequence[Any]], attributes: Sequence[Any]
) -> _Node:
    given = zip(definition.attributes, attributes)
    wanted = {
        attribute.name: _plain(attribute_data(definition.name, attribute, value))
        for attribute, value in given
        if value is not None
    }
    return _Node(definition, [each for group in operands for each in group], wanted)


def _plain(data: Any) -> Any:
    """An attribute as `Operation.attributes` has it."""
    return data.text.partition("<")[2][:-1] if isinstance(data, Syntax) else data


@dataclass(frozen=True)
class Match:
    """What a pattern found. values: by the names of its variables; ops: of the pattern, the root
    last."""

    values: dict[str, Value]
    ops: tuple[Operation, ...]

    def __getattr__(self, name: str) -> Value:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def root(self) -> Operation:
        return self.ops[-1]


class Pattern:
    """See `pattern`.

    declined: why matches were left alone the last time that it was applied, with the last such
    match.
    """

    def __init__(
        self,
        match: Callable[..., Any],
        replace: Callable[..., Any],
        where: Callable[..., bool] | None,
        name: str,
        shared: bool,
    ) -> None:
        self.name = name
        self.match = match
        self.declined: dict[str, Match] = {}
        self._replace = replace
        self._where = where
        self._shared = shared
        self.variables = list(inspect.signature(match).parameters)
        root = match(*(_Variable(each) for each in self.variables))
        if not isinstance(root, _Node):
            raise errors.IRError(f"pattern {name}: expected an op to match, found {root!r}")
        self._root = root
        missing = set(self.variables) - _variables(root)
        if missing:
            raise errors.IRError(
                f"pattern {name}: expected the match to use {', '.join(sorted(missing))}"
            )

    def find(self, op: Operation) -> Match | None:
        """What the pattern finds with `op` as its last op, if the condition holds."""
        values: dict[str, Value] = {}
        ops: list[Operation] = []
        if not self._fits(self._root, op, values, ops):
            return None
        match = Match(values, tuple(ops))
        if not self._shared and (reader := _other_reader(match)) is not None:
            inner, user = reader
            self.declined[f"{inner.name} is read by {user.name} too"] = match
            return None
        if self._where is None:
            return match
        takes = len(inspect.signature(self._where).parameters)
        given = [match] if takes == 1 and len(self.variables) != 1 else self._in_order(values)
        return match if self._where(*given) else None

    def _in_order(self, values: dict[str, Value]) -> list[Value]:
        return [values[each] for each in self.variables]

    def _fits(
        self, node: _Node, op: Operation, values: dict[str, Value], ops: list[Operation]
    ) -> bool:
        if op.full_name != node.definition.name:
            return False
        operands = op.operands
        if len(operands) != len(node.operands):
            return False
        if node.attributes:
            attributes = op.attributes
            if any(not _same(attributes.get(k), v) for k, v in node.attributes.items()):
                return False
        for wanted, operand in zip(node.operands, operands, strict=True):
            if not self._operand_fits(wanted, operand, values, ops):
                return False
        ops.append(op)
        return True

    def _operand_fits(
        self, wanted: Any, operand: Value, values: dict[str, Value], ops: list[Operation]
    ) -> bool:
        if isinstance(wanted, _Variable):
            return values.setdefault(wanted.name, operand) == operand
        producer = operand.producer
        if producer is None:
            return False
        if isinstance(wanted, _Node):
            return self._fits(wanted, producer, values, ops)
        return producer.name == "constant" and bool((producer.attributes["value"] == wanted).all())

    def apply(self, module: Module, *, remove_unused: bool = False) -> int:
        """Rewrites all matches, also those that rewriting makes. Returns how many.

        remove_unused: erases what a match leaves without a use.
        Raises: errors.PatternLimitError, if there is no end to them; the module is then as it was,
        as after any exception that `where` or the replacement raises.
        """
        return module.attempt(lambda module: self._apply(module, remove_unused))

    def _apply(self, module: Module, remove_unused: bool) -> int:
        rewriter = Rewriter(module)
        self.declined = {}
        self._apply_in_rounds(module, rewriter, remove_unused)
        for reason, match in self.declined.items():
            text = f"{match.root.name} is not rewritten: {reason}"
            module._declined.append(Remark("missed", self.name, text, match.root.location))
        return rewriter.count

    def _apply_in_rounds(self, module: Module, rewriter: Rewriter, remove_unused: bool) -> None:
        for _ in range(_MOST_ROUNDS):
            before = rewriter.count
            for op in rewriter.walk(self._root.definition.name):
                match = self.find(op)
                if match is not None:
                    self._rewrite(rewriter, match, remove_unused)
            if rewriter.count == before:
                return
        raise errors.PatternLimitError(
            f"pattern {self.name} has no end: after {rewriter.count} rewrites in {_MOST_ROUNDS} "
            "rounds it still matches",
            self.name,
        )

    def _rewrite(self, rewriter: Rewriter, match: Match, remove_unused: bool) -> None:
        with rewriter.before(match.root):
            result = self._replace(*self._in_order(match.values))
        rewriter.replace(match.root, result)
        if remove_unused:
            for op in reversed(match.ops[:-1]):
                if not op.users:
                    rewriter.erase(op)

    def __repr__(self) -> str:
        return f"<weft.ir.pattern {self.name}>"


def pattern(
    match: Callable[..., Any],
    replace: Callable[..., Any],
    where: Callable[..., bool] | None = None,
    *,
    name: str | None = None,
    shared: bool = False,
) -> Pattern:
    """A rewrite: ops as `match` makes them of its parameters become what `replace` makes.

        fma = weft.ir.pattern(
            lambda a, b, c: ops.add(ops.mul(a, b), c), lambda a, b, c: ops.fma(a, b, c)
        )
        fma.apply(module)  # the number of rewrites

    A parameter that occurs twice has to be the same value twice; a number in place of an operand
    is a constant of that number. Attributes are matched too; None stands for any.

    where: a condition on the values, in the order of `match`'s parameters, or, with one parameter,
    on the `Match`. name: in errors; by default where the pattern was made. shared: also rewrite
    where other ops read an inner result, which then is computed twice.
    Raises: errors.IRError, if `match` makes no op.
    """
    if name is None:
        file, line, _ = caller()
        name = f"{file}:{line}"
    return Pattern(match, replace, where, name, shared)


def _other_reader(match: Match) -> tuple[Operation, Operation] | None:
    """An op of the match and one outside it that reads an inner result."""
    inner = set(match.ops)
    for op in match.ops[:-1]:
        for user in op.users:
            if user not in inner:
                return op, user
    return None


def _variables(node: Any) -> set[str]:
    if isinstance(node, _Variable):
        return {node.name}
    if isinstance(node, _Node):
        return set().union(*map(_variables, node.operands))
    return set()


def _same(found: Any, wanted: Any) -> bool:
    if hasattr(found, "shape"):  # a constant: of the value's elements
        return False
    return found == wanted
