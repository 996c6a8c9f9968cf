# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table from ONNX operators to functions of torch tensors.

A rule stands for an operator from one version of its operator set on, until another rule does. It
says which attributes it knows, so that a newer operator with others is refused, not misread.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from weft import errors

# Operator sets whose meaning the rules have been written for.
NEWEST = {"": 26, "ai.onnx.preview.training": 1}


@dataclass(frozen=True)
class Rule:
    """operator: its domain and name. function: of the node and its inputs, None for those left
    out; gives a tensor, a sequence as a list, or a tuple of them. since: the version from which it
    holds. draws: its values come from a generator. runs: it runs subgraphs, and takes the `Scope`
    to do so first."""

    operator: tuple[str, str]
    function: Callable[..., Any]
    since: int
    attributes: frozenset[str]
    draws: bool
    runs: bool

    def __reduce__(self) -> tuple[Any, ...]:
        """A module of them can be stored; functions made in a loop cannot."""
        return _rule_since, (self.operator, self.since)


@dataclass(frozen=True)
class Node:
    """One application of an operator. Absent inputs and outputs have the name "".

    opset: the version of its domain's operator set that the model imports. attributes: tensors
    are torch's, subgraphs `Graph`s. place: the model's file, and the number of the node among those
    of its graph, from 1 on.
    """

    op: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    opset: int
    attributes: dict[str, Any] = field(default_factory=dict)
    rule: Rule | None = None
    place: tuple[str, int] = ("", 1)

    def get(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def has_output(self, number: int) -> bool:
        return len(self.outputs) > number and self.outputs[number] != ""

    def unsupported(self, why: str) -> errors.UnsupportedError:
        return errors.UnsupportedError(f"{self}: {why}")

    def __str__(self) -> str:
        domain = self.domain or "ai.onnx"
        name = self.name or f"that makes {', '.join(name for name in self.outputs if name)!r}"
        return f"operator {self.op} of {domain} {self.opset}, node {name}"


_rules: dict[tuple[str, str], list[Rule]] = {}


def op(
    names: str,
    attributes: str = "",
    *,
    since: int = 1,
    domain: str = "",
    draws: bool = False,
    runs: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters a function in the table. names, attributes: separated by spaces."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names.split():
            key = domain, name
            rule = Rule(key, function, since, frozenset(attributes.split()), draws, runs)
            _rules.setdefault(key, []).append(rule)
        return function

    return enter


def rule_for(node: Node) -> Rule:
    """Raises: errors.UnsupportedError, naming operator, domain, operator set and node."""
    from weft.onnx import ops  # noqa: F401  (fills the table)

    newest = NEWEST.get(node.domain)
    if newest is not None and node.opset > newest:
        raise node.unsupported(f"operator sets up to {newest} are known")
    known = _rules.get((node.domain, node.op), [])
    fitting = [rule for rule in known if rule.since <= node.opset]
    if not fitting:
        why = f"it is known from operator set {min(r.since for r in known)} on" if known else None
        raise node.unsupported(why or "it is not known")
    rule = max(fitting, key=lambda each: each.since)
    unknown = sorted(set(node.attributes) - rule.attributes)
    if unknown:
        raise node.unsupported(f"attribute {unknown[0]} is not known")
    leading = 2 if rule.runs else 1
    try:
        inspect.signature(rule.function).bind(*range(leading + len(node.inputs)))
    except TypeError:
        raise node.unsupported(f"a form with {len(node.inputs)} inputs is not known") from None
    return rule


def _rule_since(operator: tuple[str, str], since: int) -> Rule:
    from weft.onnx import ops  # noqa: F401

    return next(rule for rule in _rules[operator] if rule.since == since)


def has_rule(domain: str, name: str) -> bool:
    """In any operator set."""
    from weft.onnx import ops  # noqa: F401

    return ("" if domain == "ai.onnx" else domain, name) in _rules


def operators() -> list[tuple[str, str]]:
    """Every domain and operator with a rule."""
    from weft.onnx import ops  # noqa: F401

    return sorted(_rules)
