# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of the graph dialect as functions, made of its definitions: `help(weft.ir.ops.add)`.

Each makes an op where ops are being made and returns its result; operands that are arrays become
constants. Types are inferred; where that cannot be, as for `reshape`, `result_type` is a type or,
for the element type of the operand, a shape. Nothing is broadcast: that is an op of its own.
Ops whose names are Python's have an underscore behind them, as `and_`.

Raises: errors.VerificationError with the rules of the op that the operands break.
"""

from weft._graph_ops import *  # noqa: F403
from weft._graph_ops import __all__  # noqa: F401
