# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every block of Python on the site's pages runs, or is part of a file that does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from pages import blocks, run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Which test runs the blocks of a page.
RUN_BY = {
    "compiler-writers-face.md": "test_ir_tour.py",
    "errors.md": "test_docs_snippets.py",
    "fast-cells.md": "test_fast_cells.py",
    "importing.md": "test_importing_docs.py",
    "observing.md": "test_observing_docs.py",
    "tensor-expressions.md": "test_te_docs.py",
    "tour.md": "test_docs_snippets.py",
    "tuning.md": "test_te_docs.py",
    "twins.md": "test_docs_snippets.py",
    "using.md": "test_docs_snippets.py",
}


def test_each_page_has_its_test():
    with_blocks = {
        page.name for page in DOCS.glob("*.md") if "```python" in page.read_text("utf-8")
    }
    assert with_blocks == RUN_BY.keys()
    for page, test in RUN_BY.items():
        source = (Path(__file__).parent / test).read_text("utf-8")
        assert page in source, f"{test} runs {page}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("page, count", [("errors.md", 1), ("twins.md", 8), ("using.md", 2)])
def test_the_page_runs(page, count, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    torch.manual_seed(0)
    import weft

    names = {
        "__name__": "page",
        "weft": weft,
        "model": torch.nn.Linear(4, 4),
        "x": torch.ones(2, 4),
    }
    assert len(blocks(DOCS / page)) == count
    run(DOCS / page, names)


def test_the_tour_is_the_example():
    example = (ROOT / "examples" / "tour.py").read_text("utf-8")
    lines = {line.strip() for line in example.splitlines()}
    for _, block in blocks(DOCS / "tour.md"):
        assert {line.strip() for line in block.splitlines()} <= lines
