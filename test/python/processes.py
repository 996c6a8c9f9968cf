# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs Python in child processes."""

from __future__ import annotations

import os
import subprocess
import sys


def python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
