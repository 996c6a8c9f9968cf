// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The AVX512-BF16 dot product of bfloat16 pairs (vdpbf16ps).
#ifndef WEFT_COMPILER_KERNELS_X86_BF16DOTPRODUCT_H
#define WEFT_COMPILER_KERNELS_X86_BF16DOTPRODUCT_H

#include "mlir/IR/Builders.h"

namespace weft {

/// sum[i] + a[2i] * b[2i] + a[2i+1] * b[2i+1]; sum: 16 x f32; a, b: 32 x bf16. Denormals are
/// flushed to zero. For targets with `hasBFloat16`.
mlir::Value addPairProducts(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value sum,
                            mlir::Value a, mlir::Value b);

} // namespace weft

#endif
