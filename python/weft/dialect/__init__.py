# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The graph dialect in Python: what its definitions say of each op, and how ops are made.

The build makes two modules of compiler/Graph/*.td: `weft._graph_definitions`, and
`weft._graph_ops` with a function for each op. The frontend makes its graphs with those functions,
and so does whoever writes IR with `weft.ir.ops`; loading them does not load the compiler.
"""
