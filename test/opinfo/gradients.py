# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Judges gradients: `PYTHONPATH=test .venv/bin/python -m opinfo.gradients --share 0.05`.

Each call of an op that `op_db` says to be differentiable is compiled and made three times, as by a
user: the second and third are answered by the programs, if these have reproduced the first one.
Gradients along cotangents that differ everywhere are PASS where programs gave them, EAGER where
PyTorch did, and WRONG where they are no gradients of eager execution: further than 1.5 times
eager's error from float64, and than some last bits of the largest number, which may be a cotangent
where float64 itself is judged.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch.utils import _pytree as pytree

import weft
from opinfo.__main__ import shared
from opinfo.calls import Call, copies, seed_all
from opinfo.entry import Verdict
from opinfo.samples import DTYPES, Choice, Entry, calls_of, entries, ops

_CALLS = 3
_MOST_OF_EAGER = 1.5
_LAST_BITS = 64
_LARGEST_COTANGENT = 2
_SEED = 42

Gradients = list[torch.Tensor | None]


def differentiable_entries(dtypes: Sequence[str]) -> list[Entry]:
    found = entries(list(dtypes), ["call"])
    return [
        each
        for each in found
        if ops()[each.op].supports_autograd
        and DTYPES[each.dtype] in ops()[each.op].supported_backward_dtypes("cpu")
    ]


def judge_gradients(call: Call) -> tuple[Verdict, str]:
    """The verdict, and why."""
    if any(each.layout != torch.strided for each in call.tensors):
        return Verdict.REFUSED, "a tensor is not strided"
    try:
        expected = _gradients(call.on, call.tensors)
    except Exception as error:  # what PyTorch refuses is judged by other kinds of entries
        return Verdict.REFUSED, f"{type(error).__name__}: {error}"
    if not expected:
        return Verdict.REFUSED, "nothing requires gradients"

    def function(*tensors: torch.Tensor):
        return call.on(tensors)

    compiled = weft.compile(function)
    for _ in range(_CALLS):
        found = _gradients(lambda tensors: compiled(*tensors), call.tensors)
    if (what := _difference(call, expected, found)) is not None:
        return Verdict.WRONG, what
    stats = weft.stats(compiled)
    if stats["breaks"] or not stats["hits"]:
        return Verdict.EAGER, next(iter(stats["breaks"]), "no program was ready")
    return Verdict.PASS, ""


def _gradients(
    function: Callable[[list[torch.Tensor]], object],
    tensors: Sequence[torch.Tensor],
    double: bool = False,
) -> Gradients:
    """Empty, if no result requires gradients."""
    seed_all(_SEED)
    given = [each.detach() for each in copies(tensors)]
    if double:
        given = [each.double() if each.is_floating_point() else each for each in given]
    given = [each.requires_grad_(each.is_floating_point()) for each in given]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        leaves = pytree.tree_leaves(function(given))
        results = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad]
        wanted = [each for each in given if each.requires_grad]
        if not results or not wanted or any(each.is_complex() for each in results):
            return []
        cotangents = [
            torch.linspace(-1, _LARGEST_COTANGENT, each.numel(), dtype=torch.float64)
            .to(each)
            .reshape(each.shape)
            for each in results
        ]
        return list(torch.autograd.grad(results, wanted, cotangents, allow_unused=True))


def _difference(call: Call, expected: Gradients, found: Gradients) -> str | None:
    if len(expected) != len(found):
        return f"{len(found)} gradients instead of {len(expected)}"
    exact: Gradients | None = None
    for number, (want, got) in enumerate(zip(expected, found)):
        if (want is None) != (got is None):
            return f"gradient {number} is {'none' if got is None else 'there'}"
        if want is None or torch.equal(want.nan_to_num(7.0), got.nan_to_num(7.0)):
            continue
        if (want.shape, want.dtype) != (got.shape, got.dtype):
            return f"gradient {number} has another shape or dtype"
        if exact is None:
            exact = _exact(call, expected)
        largest = _largest(want)
        if want.dtype is torch.float64:  # eager's own error is not known
            largest = max(largest, _LARGEST_COTANGENT)
        bits = _LAST_BITS * torch.finfo(want.dtype).eps * largest
        better = exact[number].double()
        error = _MOST_OF_EAGER * (want.double() - better).abs() + bits
        far = ~((got.double() - better).abs() <= error) & ~(want.isnan() & got.isnan())
        if far.any():
            place = int(far.flatten().to(torch.uint8).argmax())
            values = want.flatten()[place].item(), got.flatten()[place].item()
            return f"gradient {number} is {values[1]} instead of {values[0]} at {place}"
    return None


def _exact(call: Call, expected: Gradients) -> Gradients:
    """In float64, or eager's own where that has none."""
    try:
        exact = _gradients(call.on, call.tensors, double=True)
    except Exception:
        return expected
    fits = len(exact) == len(expected) and all(
        (x is None) == (y is None) for x, y in zip(exact, expected)
    )
    return exact if fits else expected


def _largest(tensor: torch.Tensor) -> float:
    return float(tensor.abs().nan_to_num(0.0, posinf=0.0).max()) if tensor.numel() else 0.0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="opinfo.gradients", description="Judges gradients.")
    parser.add_argument("--op", nargs="+", help="names as in op_db, with their variants")
    parser.add_argument("--dtype", nargs="+", default=["f64", "f32"], choices=["f32", "f64"])
    parser.add_argument("--share", type=float, default=1.0, help="of the entries, chosen by seed")
    parser.add_argument("--most", type=int, default=2, help="samples of an entry")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    chosen = differentiable_entries(options.dtype)
    if options.op:
        chosen = [entry for entry in chosen if entry.op in options.op]
    weft.config.verify = "first"
    warnings.simplefilter("ignore", weft.errors.WeftWarning)
    counts: Counter[Verdict] = Counter()
    for entry in shared(chosen, options.share, options.seed):
        for call in calls_of(entry, Choice(options.seed, most=options.most)):
            verdict, why = judge_gradients(call)
            counts[verdict] += 1
            if verdict is not Verdict.PASS:
                print(f"{verdict} {entry}, {call.label[:80]}: {why[:160]}", flush=True)
    judged = counts[Verdict.PASS] + counts[Verdict.EAGER] + counts[Verdict.WRONG]
    native = counts[Verdict.PASS] / max(judged, 1)
    print(", ".join(f"{verdict} {count}" for verdict, count in counts.items()))
    print(f"by programs: {native:.1%} of {judged} calls")
    return 1 if counts[Verdict.WRONG] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
