# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Judges one node test: whether the values are right, and who computed them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch

import weft
from onnx_nodes.cases import Case
from weft import errors
from weft.onnx.graph import subgraphs

# As in ONNX's own runner.
RELATIVE, ABSOLUTE = 1e-3, 1e-7
# The data of ONNX 1.12 cuts bfloat16 off; since operator set 19 it is to be rounded.
_RELATIVE_BFLOAT16 = 2**-7


class Verdict(StrEnum):
    """NATIVE: right, and all compiled. EAGER: right, with PyTorch's help."""

    NATIVE = "PASS native"
    EAGER = "PASS eager"
    UNSUPPORTED = "UNSUPPORTED"
    WRONG = "WRONG"


@dataclass(frozen=True)
class Judged:
    case: str
    verdict: Verdict
    why: str = ""


class Different(Exception):
    pass


def judge(case: Case) -> Judged:
    try:
        sets = case.sets()
        program = weft.from_onnx(case.model())
    except errors.UnsupportedError as why:
        return Judged(case.name, Verdict.UNSUPPORTED, str(why))
    except Exception as error:
        return Judged(case.name, Verdict.WRONG, f"import: {type(error).__name__}: {error}")
    draws = _draws(program.module.graph)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.WeftWarning)
            for inputs, outputs in sets:
                # The second call is another program's, where the first one was compared.
                for _ in range(2):
                    found = program(*inputs)
                    found = (found,) if len(outputs) == 1 else found
                    _compare(list(found), outputs, values=not draws)
    except errors.UnsupportedError as why:
        return Judged(case.name, Verdict.UNSUPPORTED, str(why))
    except Exception as error:
        return Judged(case.name, Verdict.WRONG, f"{type(error).__name__}: {error}")
    if reasons := _run_by_pytorch(program):
        return Judged(case.name, Verdict.EAGER, reasons[0])
    return Judged(
        case.name, Verdict.NATIVE, "by shapes and types: values are drawn" if draws else ""
    )


def _draws(graph: Any) -> bool:
    """Whether ONNX leaves the values open. A Dropout is one that draws only while training with
    a ratio, which its mask or values then tell."""
    for node in graph.nodes:
        if any(_draws(inner) for inner in subgraphs(node)):
            return True
        if node.op == "Dropout":
            if len(node.inputs) > 2 and node.inputs[2]:
                ratio = graph.initializers.get(node.inputs[1])
                if ratio is None or ratio.item() != 0:
                    return True
        elif node.rule.draws:
            return True
    return False


def _run_by_pytorch(program: Any) -> list[str]:
    reasons = list(weft.stats(program)["breaks"])
    for path in program.callable.face.artifact_paths:
        manifest = weft.load(path).manifest
        reasons += [f"{each['target']} runs in PyTorch" for each in manifest["fallbacks"]]
    return reasons


def _compare(found: list[Any], wanted: list[Any], values: bool) -> None:
    """Raises: Different."""
    if len(found) < len(wanted):
        raise Different(f"expected {len(wanted)} outputs, found {len(found)}")
    for number, (a, b) in enumerate(zip(found, wanted)):
        _compare_one(f"output {number}", a, b, values)


def _compare_one(name: str, found: Any, wanted: Any, values: bool) -> None:
    if isinstance(wanted, list):
        if not isinstance(found, list | tuple) or len(found) != len(wanted):
            raise Different(f"{name}: expected {len(wanted)} tensors, found {found!r:.80}")
        for i, (a, b) in enumerate(zip(found, wanted)):
            _compare_one(f"{name}[{i}]", a, b, values)
        return
    if wanted is None or found is None:
        if found is not wanted:
            raise Different(f"{name}: expected {wanted!r:.80}, found {found!r:.80}")
        return
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        kinds = [f"{each.dtype} {[*each.shape]}" for each in (wanted, found)]
        raise Different(f"{name}: expected {kinds[0]}, found {kinds[1]}")
    if not values:
        return
    if wanted.dtype.is_floating_point:
        a, b = found.to(torch.float64), wanted.to(torch.float64)
        relative = _RELATIVE_BFLOAT16 if wanted.dtype == torch.bfloat16 else RELATIVE
        same = torch.isclose(a, b, rtol=relative, atol=ABSOLUTE, equal_nan=True)
    else:
        same = found == wanted
    if not same.all():
        places = torch.nonzero(~same)
        place = tuple(places[0].tolist())
        raise Different(
            f"{name}: {len(places)} of {same.numel()} elements differ, at {list(place)}: "
            f"expected {wanted[place].item()}, found {found[place].item()}"
        )
