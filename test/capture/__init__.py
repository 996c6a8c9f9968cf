# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user's program may contain, and whether Weft is right about it: `make capture-fuzz`.

`programs/` holds small programs, one for each construct. The fuzzer compiles each, changes one
thing that the program may read, and compares the next calls with eager execution in an equal
world. `__main__` says how to run it.
"""
