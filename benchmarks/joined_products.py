# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.joined_products`: short products with and without weft-join-products.

Six products of computed operands, summed up or of one weight, on one thread; the least of the calls
in turns. The share is what joining copies ÷ what it saves, in elements: the pass asks for less than
an eighth (half, of a weight that is larger than the second-level cache).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table

import weft
from weft import _core

PRODUCTS, CALLS = 6, 40
SIZES = ((512, 512), (2048, 512), (128, 128))
SHORT = (1, 2, 4, 8, 16, 32, 64)


def summed(many: list[torch.Tensor], others: list[torch.Tensor]) -> torch.Tensor:
    return sum((x * 2).t() @ (y + 1) for x, y in zip(many, others))


def of_one_weight(many: list[torch.Tensor], others: list[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.tanh((x * 2) @ others[0]) for x in many]


def least(program: Callable, inputs: tuple) -> tuple[float, float]:
    """Seconds of a call with the pass, and without."""
    both = [weft.compile(program, without=names) for names in ((), ("weft-join-products",))]
    found = [math.inf, math.inf]
    for call in range(CALLS + 2):
        for number, compiled in enumerate(both):
            start = time.perf_counter()
            compiled(*inputs)
            if call > 1:
                found[number] = min(found[number], time.perf_counter() - start)
    return found[0], found[1]


def main() -> None:
    torch.set_num_threads(1)
    _core.set_num_threads(1)
    table = Table("product", "share", "without ÷ with: summed", "of one weight")
    with torch.no_grad():
        for wide, narrow in SIZES:
            for short in SHORT:
                lhs = [torch.randn(short, wide) for _ in range(PRODUCTS)]
                rhs = [torch.randn(short, narrow) for _ in range(PRODUCTS)]
                rows = [torch.randn(short, narrow) for _ in range(PRODUCTS)]
                ratios = []
                for program, inputs in (
                    (summed, (lhs, rhs)),
                    (of_one_weight, (rows, [torch.randn(narrow, wide)])),
                ):
                    joined, apart = least(program, inputs)
                    ratios.append(f"{apart / joined:.2f}")
                share = short * (wide + narrow) / (wide * narrow)
                table.add_row(f"{short} of {wide} × {narrow}", f"{share:.3f}", *ratios)
    Console().print(table)


if __name__ == "__main__":
    main()
