#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/overloads.md: which core ATen overloads the frontend has no rule for, and why.

`--check` fails where the file is not what would be written. An overload without a rule and without
a reason here is an error: a new version of PyTorch may bring one.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

import weft.frontend.ops  # noqa: F401 (fills the table)
from weft.frontend.decompose import has_same_values
from weft.frontend.table import TABLE

FILE = Path(__file__).resolve().parent.parent / "docs" / "overloads.md"

_GRADIENT = "the gradient of another op, which Weft derives from that op itself"
_TRANSFORM = "PyTorch's transform runs inside the program, on pairs of reals"
_DATA = "its size or number depends on data: the call runs in PyTorch"
_DRAWS = "draws from PyTorch's generator, which its kernel does inside the program"
_SIZES = "asks for a size; sizes are numbers once a program is captured"
REASONS = {
    "_adaptive_avg_pool2d_backward.default": _GRADIENT,
    "_fft_c2r.default": _TRANSFORM,
    "_fft_r2c.default": _TRANSFORM,
    "_local_scalar_dense.default": _DATA,
    "_pdist_forward.default": "rare: PyTorch's kernel runs inside the program",
    "atan2.out": "writes its argument: stands for atan2.default and a copy",
    "avg_pool2d_backward.default": _GRADIENT,
    "convolution_backward.default": _GRADIENT,
    "embedding_dense_backward.default": _GRADIENT,
    "max_pool2d_with_indices_backward.default": _GRADIENT,
    "native_group_norm_backward.default": _GRADIENT,
    "native_layer_norm_backward.default": _GRADIENT,
    "nonzero.default": "chosen places, by a rule of their own (`masked_places.py`)",
    "rand.default": _DRAWS,
    "randn.default": _DRAWS,
    "randperm.default": _DRAWS,
    "sym_numel.default": _SIZES,
    "sym_size.int": _SIZES,
    "sym_storage_offset.default": _SIZES,
    "sym_stride.int": _SIZES,
}


def core_overloads() -> Iterator[torch._ops.OpOverload]:
    for packet in (getattr(torch.ops.aten, name) for name in sorted(dir(torch.ops.aten))):
        if isinstance(packet, torch._ops.OpOverloadPacket):
            for overload in (getattr(packet, name) for name in packet.overloads()):
                if torch.Tag.core in overload.tags:
                    yield overload


def reason_of(overload: torch._ops.OpOverload) -> str:
    """Raises: KeyError, if there is none."""
    if has_same_values(overload):
        return "stands for other ops of the table, by PyTorch's own decomposition"
    return REASONS[str(overload).removeprefix("aten.")]


def document() -> str:
    core = list(core_overloads())
    without = [each for each in core if str(each) not in TABLE]
    beyond = len(TABLE) - (len(core) - len(without))
    lines = [
        "# Core ATen overloads without a rule",
        "",
        f"Written by `tools/write-overloads.py` for PyTorch {torch.__version__.split('+')[0]}. "
        f"Of {len(core)} overloads that PyTorch calls core, {len(core) - len(without)} have a rule "
        f"of the frontend's table (`python/weft/frontend/ops`), and so have {beyond} others. "
        "These have none:",
        "",
        "| overload | why |",
        "| --- | --- |",
        *(f"| `{each}` | {reason_of(each)} |" for each in without),
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    text = document()
    if not parser.parse_args().check:
        FILE.write_text(text)
        return 0
    if FILE.read_text() == text:
        return 0
    print(f"{FILE.name} is not what tools/write-overloads.py writes", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
