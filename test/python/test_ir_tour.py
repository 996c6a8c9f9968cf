# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The snippets of docs/compiler-writers-face.md run, one after another."""

from __future__ import annotations

from pathlib import Path

import torch
from pages import blocks, run

TOUR = Path(__file__).parents[2] / "docs" / "compiler-writers-face.md"


def test_the_tour_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    assert len(blocks(TOUR)) >= 5
    names = {"__name__": "tour"}
    run(TOUR, names)
    out = capsys.readouterr().out
    assert "+    %0 = weft.fma %arg0, %arg1, %arg1" in out and "wrong at sub" in out
    assert "weft.exp is not part of the kernel of weft.add" in out and "writes y0[i0, i1]" in out
    assert "<svg" in (tmp_path / "kernels.svg").read_text()
