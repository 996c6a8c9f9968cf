# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""That the cut between forward and backward is the best one: brute force over small graphs."""

from __future__ import annotations

import itertools
import math
import random

import pytest
import torch

import weft
from weft.compiled.module import callable_of
from weft.ir import Module

_MOST_OPS = 12
_VIEWS = ("broadcast_in_dim", "relayout", "reshape", "slice", "transpose")


def random_function(seed: int):
    """A function of two tensors, (4, 6) and (6,), of a few ops, and how many they are."""
    rng = random.Random(seed)
    steps = []
    for number in range(rng.randint(3, _MOST_OPS - 3)):
        kind = rng.choice(["unary", "unary", "binary", "sum"])
        places = [rng.randrange(number + 2) for _ in range(2)]
        steps.append((kind, rng.choice(["sin", "exp", "tanh", "sigmoid"]), *places))

    def function(x, y):
        values = [x, y]
        for kind, name, first, second in steps:
            if kind == "unary":
                values.append(getattr(torch, name)(values[first]))
            elif kind == "sum" and values[first].dim() == 2:
                values.append(values[first].sum(0))
            else:
                values.append(values[first] * values[second])
        return values[-1] + values[len(values) // 2]

    return function


def size_of(value) -> int:
    return math.prod(value.type.shape) * 8


def least_bytes(joint, inputs: int, results: int) -> int:
    """The fewest bytes of forward values from which, and from what is at hand, the backward can be
    computed."""
    body = list(joint.body)[:-1]
    given = list(joint.params)[:inputs]
    dependent = set(list(joint.params)[inputs:])
    for op in body:
        if any(operand in dependent for operand in op.operands):
            dependent.update(op.results)
    forward = [op for op in body if not any(each in dependent for each in op.results)]
    needed = {
        operand
        for op in body
        if op.results[0] in dependent
        for operand in op.operands
        if operand not in dependent
    }
    returned = joint.returns[:results]
    needed.update(each for each in joint.returns[results:] if each not in dependent)
    live = set(returned)
    for op in reversed(forward):
        if any(each in live for each in op.results):
            live.update(op.operands)
    of_forward = [op for op in forward if any(each in live for each in op.results)]

    def reads(value) -> bool:
        if value in needed:
            return True
        users = [op for op in forward if value in op.operands]
        if any(op not in of_forward for op in users):
            return True
        return any(op.name in _VIEWS and reads(op.results[0]) for op in users)

    at_hand = {value for value in given if reads(value)} | set(returned)
    candidates = [op.results[0] for op in forward if op.operands and op.results[0] not in at_hand]
    candidates += [value for value in given if value not in at_hand]  # copies
    best = math.inf
    for count in range(len(candidates) + 1):
        for chosen in itertools.combinations(candidates, count):
            size = sum(map(size_of, chosen))
            if size < best and _suffices(forward, needed, at_hand | set(chosen)):
                best = size
    return best


def _suffices(forward, needed, known) -> bool:
    known = set(known)
    for op in forward:
        if all(operand in known for operand in op.operands):
            known.update(op.results)
    return needed <= known


@pytest.mark.parametrize("first", range(0, 12, 6))
def test_no_smaller_set_suffices(first, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    compared = 0
    for seed in range(first, first + 6):
        x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
        y = torch.randn(6, dtype=torch.float64, requires_grad=True)
        compiled = weft.compile(random_function(seed), memory_budget=0.0)
        compiled(x, y)
        face = callable_of(compiled).face
        training = face.programs.latest().training
        joint = Module.parse(face.ir("joint"))["main"]
        inputs = len(joint.params) - len(training.outputs)
        if len(list(joint.body)) > 40:
            continue
        saved = sum(
            size
            for (_, size), (kind, _) in zip(training.saved_bytes, kinds_of(training), strict=True)
            if kind == "saved"
        )
        assert saved == least_bytes(joint, inputs, training.count), seed
        compared += 1
    assert compared >= 3


def kinds_of(training):
    return [each for each in training.reads if each[0] in ("saved", "result")]
