# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which cases of parametrized tests `make test` runs. Products of parameters are thinned out until
each value of each parameter is left in at least one case. Of lists of similar cases the marker
`sampled` keeps one in n, and without it at most MOST are kept. Tests marked `at_length` are left
out. `--cases=rest` runs the other cases, and `--cases=all`, as pytest without the option, runs
every case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

MOST = 8  # cases of a function


def chosen(items: list[pytest.Item]) -> list[pytest.Item]:
    """The items that represent all of `items`, in their order. They are the same in each run."""
    functions: dict[tuple[Any, ...], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("at_length"):
            name = getattr(item, "originalname", item.name)
            functions[item.path, getattr(item, "cls", None), name].append(item)
    kept = {id(item) for cases in functions.values() for item in _sampled(_covering(cases))}
    return [item for item in items if id(item) in kept]


def _covering(cases: list[pytest.Item]) -> list[pytest.Item]:
    """A small number of cases in which each value of each parameter occurs."""
    values = [_values(case) for case in cases]
    left = set().union(*values)
    kept = []
    while left:
        best = max(range(len(cases)), key=lambda at: (len(values[at] & left), -at))
        kept.append(best)
        left -= values[best]
    return [cases[at] for at in sorted(kept)] or cases


def _values(case: pytest.Item) -> frozenset[tuple[Any, ...]]:
    """What the case gets from each `parametrize` and each fixture with parameters: the parameter's
    names and the objects, which all cases of a function share."""
    callspec = getattr(case, "callspec", None)
    if callspec is None:
        return frozenset()
    together = [_names(mark.args[0]) for mark in case.iter_markers("parametrize")]
    alone = set(callspec.params).difference(*together)
    groups = [*together, *((name,) for name in sorted(alone))]
    return frozenset((names, *(id(callspec.params[name]) for name in names)) for names in groups)


def _names(argument: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(argument, str):
        return tuple(name.strip() for name in argument.split(",") if name.strip())
    return tuple(argument)


def _sampled(cases: list[pytest.Item]) -> list[pytest.Item]:
    mark = cases[0].get_closest_marker("sampled")
    return cases[:: mark.args[0] if mark else -(-len(cases) // MOST)]
