# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loop functions on their own, for the interpreter of the graph, which knows no loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from weft.ir.building import Builder
from weft.ir.functions import Function
from weft.ir.lower_ops import add_function
from weft.ir.module import Module


def compiled(function: Function) -> Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]:
    """Runs machine code of the function on tensors of its types.

    Raises: errors.CompileError.
    """
    from weft.ir.running import executable

    module = Module()
    text = str(function).replace(f"@{function.name}(", "@NAME(", 1)
    add_function(module, text, "loops")
    builder = Builder(module)
    with builder.function("main", *function.param_types) as params:
        result = builder.call("loops", *params)
        builder.returns(*(result if isinstance(result, tuple) else [result]))
    run = executable(module, "kernels")
    dtypes = [type_.torch_dtype for type_ in function.param_types]
    return lambda tensors: run([t.to(dtype) for t, dtype in zip(tensors, dtypes, strict=True)])
