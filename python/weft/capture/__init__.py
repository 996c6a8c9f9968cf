# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What becomes a program, and what it depends on: one call's graph, its arguments and outputs as
patterns, the state that the call reads, and the effects that no program repeats.
"""
