# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The snippets of docs/tensor-expressions.md run, one after another."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tensor-expressions.md"


def test_the_snippets_run_and_print_what_the_page_says():
    text = PAGE.read_text("utf-8")
    scope: dict = {"__name__": "page"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for snippet in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
            exec(compile(snippet, str(PAGE), "exec"), scope)
    (expected,) = re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)
    assert printed.getvalue() == expected
