# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sizes that each kind of kernel is run at on guarded memory: a few, chosen for the tails that
they leave, or with `--guard-pages=whole` every size from 0 to 70 and those around blocks."""

from __future__ import annotations

from collections.abc import Iterable

FEW = {
    "conversions": (17, 33),
    "contractions": (1, 17, 33, 7),
    "matrix_units": (1, 33),
    "convolutions": (3, 17),
    "attentions": (17, 5, 33),
    "chains": (6, 17),
    "lookups": (1, 17),
    "windows": (5, 17),
}
FEW_OTHERWISE = (0, 1, 9, 33)
BLOCKS = [size + step for size in (96, 128, 192, 256, 384, 512, 1024) for step in (-1, 0, 1)]


def is_whole(config) -> bool:
    return config.getoption("--guard-pages") == "whole"


def sizes_of(kind: str, whole: bool) -> list[tuple[int, ...]]:
    """In parts, each of which makes one test."""
    if not whole:
        return [FEW.get(kind, FEW_OTHERWISE)]
    every = [*range(71), *BLOCKS]
    return [tuple(every[i : i + 8]) for i in range(0, len(every), 8)]


def parametrize(metafunc, kinds: Iterable[str]) -> None:
    """Gives a test that takes `kind` and `sizes` each kind at each part of its sizes."""
    cases = [(kind, part) for kind in kinds for part in sizes_of(kind, is_whole(metafunc.config))]
    names = [f"{kind}-{part[0]}" for kind, part in cases]
    metafunc.parametrize(("kind", "sizes"), cases, ids=names)
