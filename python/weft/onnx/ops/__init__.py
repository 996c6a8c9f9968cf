# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of ONNX operators, by family. Importing this package fills the table.

Source: the operator specification of ONNX, https://onnx.ai/onnx/operators/
"""

from weft.onnx.ops import (  # noqa: F401
    contraction,
    control,
    convolution,
    detection,
    elementwise,
    indexing,
    losses,
    normalization,
    pooling,
    quantization,
    random,
    recurrent,
    reduction,
    resize,
    sequences,
    shapes,
    signal,
    training,
)
