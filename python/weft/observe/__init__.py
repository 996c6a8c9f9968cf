# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing the interpreter: `weft.compile(f, capture="observe", backend="eager")`.

The C++ code in `capture/` watches a first call and makes a log of it. This package declares what
functions in C do (`declared`), and has the object behind the callable that keeps the programs
(`face`).
"""
