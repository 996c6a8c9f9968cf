// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The padding of a convolution as an op of its own, which the producer of its input can store.
#ifndef WEFT_COMPILER_TRANSFORMS_CONVPADDING_H
#define WEFT_COMPILER_TRANSFORMS_CONVPADDING_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// `value` with `low` and `high` zeros around every dim; its layout is kept.
mlir::Value paddedByZeros(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                          llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high);

/// Puts a weft.pad ahead of `conv` where it pads, which then does not; layouts are kept.
void movePaddingOut(mlir::OpBuilder &builder, ConvOp conv);

} // namespace weft

#endif
