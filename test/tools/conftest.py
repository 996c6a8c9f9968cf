# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a script of tools/ as a user does."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def run_tool(tmp_path):
    """run_tool(script, {path: text}): writes the files, checks them; gives the finished process."""

    def run(script: str, files: dict[str, str]) -> subprocess.CompletedProcess:
        for path, text in files.items():
            target = tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        command = [sys.executable, str(TOOLS / script), *files]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return run
