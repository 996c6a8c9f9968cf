# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which op of a program differs first from PyTorch, for the report of one that was kept away.

Every op's value becomes a result of a program made for this, and is compared with what PyTorch's
own kernel makes of the same inputs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from weft.artifacts.builds import build
from weft.artifacts.load import LoadedArtifact
from weft.capture.op_values import Values
from weft.compiled.verification import same_values
from weft.gradients.saved import random_state

if TYPE_CHECKING:
    from weft.compiled.specialize import Specialized

# Relative to the mean of an op's result: an op's own rounding.
_TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}


# What is said of a program in which no op differs: it may not be the one that the call runs.
ALONE = ", though each of its ops alone does"


def explain(
    specialized: Specialized, values: Callable[[], Values], random: torch.Tensor | None
) -> str:
    """`, first in aten.tanh.default at model.py:12 (forward)`; also left in WEFT_DUMP's folder as
    `difference.txt`. values: those of the program, made anew. random: the state of PyTorch's
    generator ahead of the call, None where nothing is drawn; the user's goes on as it was."""
    try:
        with torch.no_grad():
            found = _first_difference(specialized, values, random)
    except Exception as error:  # the program may be what does not compile in this form
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
