# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which op of a program is the first to differ from PyTorch, for the report of a program that was
not published.

A program is compiled in which every op's value is a result, and these are compared with the results
of PyTorch's own kernels for the same inputs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from weft.artifacts.builds import build
from weft.artifacts.load import LoadedArtifact
from weft.capture.op_values import Values
from weft.compiled.distances import same_values
from weft.gradients.saved import random_state

if TYPE_CHECKING:
    from weft.compiled.specialize import Specialized

# An op's own rounding, relative to the mean of its result.
_TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}


# The text if no op differs: this program may be another than the one that the call would run.
ALONE = ", though each of its ops alone does"


def explain(
    specialized: Specialized, values: Callable[[], Values], random: torch.Tensor | None
) -> str:
    """A text such as `, first in aten.tanh.default at model.py:12 (forward)`, which is also written
    to WEFT_DUMP's folder as `difference.txt`. values: computes the program's values anew. random:
    the state of PyTorch's generator before the call, None if nothing is drawn; the user's state is
    left unchanged."""
    try:
        # What the call draws and drops is an op of this program as well, even if `random` is None.
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            found = _first_difference(specialized, values, random)
    except Exception as error:  # the program may fail to compile in this form
        found = f", in an op that cannot be told ({type(error).__name__}: {error})"
    if folder := os.environ.get("WEFT_DUMP"):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "difference.txt"), "a", encoding="utf-8") as file:
            file.write(f"{specialized.shapes}{found}\n")
    return found


def _first_difference(
    specialized: Specialized, make_values: Callable[[], Values], random: torch.Tensor | None
) -> str:
    with random_state(random):
        values = make_values()
    made = build(values.graph, specialized.build.options)
    with random_state(random):
        results = LoadedArtifact(made.artifact)(*values.inputs)
    for expected, own, place in zip(values.expected, results, values.places, strict=True):
        if _differs(expected, own):
            return f", first in {place}"
    return ALONE


def _differs(expected: torch.Tensor, own: torch.Tensor) -> bool:
    if not expected.is_floating_point():
        return not torch.equal(expected, own)
    x, y = expected.double(), own.double()
    bound = _TOLERANCES[expected.dtype] * (x.abs() + x[x.isfinite()].abs().mean())
    return not bool((same_values(x, y) | ((x - y).abs() <= bound)).all())
