# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weft beside other systems; `python -m benchmarks.run` measures."""
