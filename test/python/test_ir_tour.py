# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The snippets of docs/compiler-writers-face.md run, one after another."""

from __future__ import annotations

import linecache
import re
from pathlib import Path

import torch

TOUR = Path(__file__).parents[2] / "docs" / "compiler-writers-face.md"


def test_the_tour_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    text, names = TOUR.read_text("utf-8"), {"__name__": "tour"}
    snippets = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(snippets) >= 5
    linecache.cache[str(TOUR)] = (len(text), None, text.splitlines(keepends=True), str(TOUR))
    for snippet in snippets:
        above = text[: snippet.start(1)].count("\n")
        exec(compile("\n" * above + snippet[1], str(TOUR), "exec"), names)
    out = capsys.readouterr().out
    assert "+    %0 = weft.fma %arg0, %arg1, %arg1" in out and "wrong at sub" in out
    assert "weft.exp is not part of the kernel of weft.add" in out and "writes y0[i0, i1]" in out
    assert "<svg" in (tmp_path / "kernels.svg").read_text()
