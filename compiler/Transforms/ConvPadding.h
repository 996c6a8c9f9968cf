// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The padding of a convolution as a separate op, which the producer of its input can fuse.
#ifndef WEFT_COMPILER_TRANSFORMS_CONVPADDING_H
#define WEFT_COMPILER_TRANSFORMS_CONVPADDING_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// `value` with `low` and `high` zeros around each dim, in the same layout.
mlir::Value paddedByZeros(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                          llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high);

/// Moves the padding of `conv`, if any, to a weft.pad before it; layouts are kept.
void movePaddingOut(mlir::OpBuilder &builder, ConvOp conv);

} // namespace weft

#endif
