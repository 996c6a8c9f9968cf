# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's OpInfo database as the judge of every op: `make opinfo`.

Each op of `op_db` is called with PyTorch's own samples, once by PyTorch and once by a program that
Weft makes of that call alone; every difference is WRONG. `__main__` says how to run it.
"""
