// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The padding of a convolution as an op of its own, which the producer of its input can store.
#ifndef WEFT_COMPILER_TRANSFORMS_CONVPADDING_H
#define WEFT_COMPILER_TRANSFORMS_CONVPADDING_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// Puts a weft.pad ahead of `conv` where it pads, which then does not; layouts are kept.
void movePaddingOut(mlir::OpBuilder &builder, ConvOp conv);

} // namespace weft

#endif
