# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Real programs compiled by Weft; `python -m examples.demo` runs them all."""
