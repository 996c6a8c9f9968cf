# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""te kernels called with arrays of JAX."""

import subprocess
import sys
from pathlib import Path


def test_te_kernels_read_arrays_of_jax_and_refuse_to_write_them():
    checks = Path(__file__).with_name("jax_arrays.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(checks)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
