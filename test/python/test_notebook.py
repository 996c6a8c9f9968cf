# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples' notebook runs, and its modules are shown as HTML."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

PATH = Path(__file__).parents[2] / "examples" / "notebooks" / "first_pass.ipynb"


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """A kernel of this interpreter, wherever others are installed."""
    from ipykernel.kernelspec import write_kernel_spec

    folder = tmp_path / "kernels" / "python3"
    write_kernel_spec(str(folder), extra_arguments=[])
    assert sys.executable in (folder / "kernel.json").read_text()
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))


@pytest.mark.at_length
def test_the_notebook_runs(kernels, tmp_path):
    notebook = nbformat.read(PATH, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "without outputs in the tree"
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    html = [output["data"]["text/html"] for output in outputs if "data" in output]
    assert len(html) == 1 and "weft.mul</span>" in html[0], "the module as HTML"
    text = "".join(output["text"] for output in outputs if "text" in output)
    assert "+    %new0 = weft.fma" in text or "+    %0 = weft.fma" in text
    assert "wrong at sub" in text and "least" in text
    assert "<svg" in (tmp_path / "fma.svg").read_text()
