# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/overloads.md tells of every core overload that has no rule."""

import subprocess
import sys

from conftest import TOOLS


def test_written_for_this_table():
    command = [sys.executable, str(TOOLS / "write-overloads.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
