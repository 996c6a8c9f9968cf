# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which op of a program differs first from PyTorch, for the report of one that was kept away.

Every value of the graph becomes a result of a program made for this, and is compared with what the
reference interpreter makes of the same inputs.
"""

from __future__ import annotations

import json
import os
from typing import Any

import torch

from weft.artifact import LoadedArtifact
from weft.builds import build
from weft.interpreter import run_nodes
from weft.specialize import Specialized

# Of what an op's result holds at most, relative to its mean: an op's own rounding.
_TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}


def explain(specialized: Specialized, inputs: list[torch.Tensor]) -> str:
    """`, first in weft.sinh at model.py:12 (forward)`; empty where it cannot be told. Also left as
    a file in WEFT_DUMP."""
    try:
        with torch.no_grad():
            found = _first_difference(specialized, [each.detach() for each in inputs])
    except Exception as error:  # the program itself may be what does not compile in this form
        found = f", and its first op cannot be told ({type(error).__name__}: {error})"
    if folder := os.environ.get("WEFT_DUMP"):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "difference.txt"), "a", encoding="utf-8") as file:
            file.write(f"{specialized.shapes}{found}\n")
    return found


def _first_difference(specialized: Specialized, inputs: list[torch.Tensor]) -> str:
    document = json.loads(specialized.lowered.graph)
    if specialized.draws:
        return ""
    expected = run_nodes(document, inputs)
    first = len(document["inputs"])
    made = _with_all_results(document, expected, first)
    results = LoadedArtifact(build(made, specialized.build.options).artifact)(*inputs)
    places = _places(document)
    for number, own in enumerate(results, start=first):
        if _differs(expected[number], own):
            return f", first in {places[number - first]}"
    return ", though each of its ops alone does"


def _with_all_results(document: dict[str, Any], values: list[torch.Tensor], first: int) -> bytes:
    outputs = [
        {"value": number, "order": list(range(values[number].dim()))}
        for number in range(first, len(values))
    ]
    changed = {**document, "outputs": outputs}
    changed["locs"] = changed.pop("locs")  # it stands last
    return json.dumps(changed, separators=(",", ":"), allow_nan=False).encode()


def _places(document: dict[str, Any]) -> list[str]:
    """Op and line for each result of the nodes."""
    places = []
    lines = document["locs"]["lines"]
    values = _result_counts(document)
    for node, at, count in zip(document["nodes"], document["locs"]["nodes"], values, strict=True):
        place = node["op"]
        if at is not None:
            file, line, function = lines[at]
            place = f"{place} at {file}:{line} ({function})"
        places += [place] * count
    return places


_RESULTS = {"weft.sort": 2, "weft.assert": 0}


def _result_counts(document: dict[str, Any]) -> list[int]:
    """How many results each node has."""
    return [_RESULTS.get(node["op"], len(node.get("types", ())) or 1) for node in document["nodes"]]


def _differs(expected: torch.Tensor, own: torch.Tensor) -> bool:
    if not expected.is_floating_point():
        return not torch.equal(expected, own)
    x, y = expected.double(), own.double()
    bound = _TOLERANCES[expected.dtype] * (x.abs() + x[x.isfinite()].abs().mean())
    same = (x == y) | (x.isnan() & y.isnan()) | ((x - y).abs() <= bound)
    return not bool(same.all())
