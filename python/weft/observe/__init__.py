# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing the interpreter: `weft.compile(f, capture="observe", backend="eager")`.

`capture/` watches a first call in C++ and makes a log of it; here stand what functions in C are
known to do (`declared`) and the callable that keeps the programs (`face`).
"""
