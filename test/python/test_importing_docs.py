# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The snippets of docs/importing.md, in order and in one namespace."""

import re
from pathlib import Path

import torch

DOCS = Path(__file__).parents[2] / "docs" / "importing.md"


def test_snippets_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    snippets = re.findall(r"^```python\n(.*?)^```", DOCS.read_text("utf-8"), re.M | re.S)
    assert len(snippets) > 5
    names = {}
    with torch.no_grad():
        for number, snippet in enumerate(snippets):
            exec(compile(snippet, f"{DOCS.name}, snippet {number}", "exec"), names)
