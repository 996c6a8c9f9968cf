# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/observing.md: its program runs, and leaves what the page shows."""

import re
import runpy
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "observing.md"


def test_the_program_leaves_what_the_page_shows(tmp_path, monkeypatch, verified):
    text = PAGE.read_text("utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    path = tmp_path / "page.py"
    path.write_text(program, "utf-8")
    monkeypatch.setenv("WEFT_DUMP", str(tmp_path / "dump"))
    left = runpy.run_path(str(path))
    dumped = (tmp_path / "dump" / "observed-1.txt").read_text("utf-8")
    assert dumped.replace(str(path), "page.py") == shown
    assert len(left["history"]) == 3 and left["step"].stats()["hits"] == 2
    assert (tmp_path / "dump" / "00-graph.mlir").exists()
