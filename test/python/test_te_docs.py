# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The snippets of docs/tensor-expressions.md and docs/tuning.md run, one after another."""

import contextlib
import io
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def printed_by(page):
    """What the page's text says, and what its snippets print."""
    text = page.read_text("utf-8")
    scope: dict = {"__name__": "page"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for snippet in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
            exec(compile(snippet, str(page), "exec"), scope)
    return text, printed


def test_the_snippets_run_and_print_what_the_page_says():
    text, printed = printed_by(DOCS / "tensor-expressions.md")
    (expected,) = re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)
    assert printed.getvalue() == expected


def test_the_snippets_on_tuning_run():
    text, printed = printed_by(DOCS / "tuning.md")
    assert "<tune.Task dot_general_0: " in text
    assert "<tune.Task dot_general_0: " in printed.getvalue()
