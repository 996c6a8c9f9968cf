// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One function per kind of kernel. Each fills KernelFunction::emitted or fails, and then
// the next kind is asked with a fresh one.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_EMITTERS_H
#define WEFT_COMPILER_KERNELS_EMISSION_EMITTERS_H

#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

/// Anything that ElementEmitter can follow.
llvm::LogicalResult emitLoopNest(KernelFunction &kernel);

/// Rows stored feature by feature, of what lies token by token. Fails on all others.
llvm::LogicalResult emitTokenBlocksToRows(KernelFunction &kernel);

/// Rows read feature by feature, reduced, and stored token by token. Fails on all others.
llvm::LogicalResult emitRowsToTokenBlocks(KernelFunction &kernel);

/// One weft.winograd_conv with its epilogue.
llvm::LogicalResult emitWinograd(KernelFunction &kernel);

/// Contractions with their epilogue. Fails on shapes that have no register tile.
llvm::LogicalResult emitContraction(KernelFunction &kernel);

/// Few rows of those whose operands are both contiguous along the reduction. Fails where vectors of
/// one row each cost no more.
llvm::LogicalResult emitSkinnyMatmul(KernelFunction &kernel);

/// Contractions whose operands are both contiguous along the reduction.
llvm::LogicalResult emitRowDot(KernelFunction &kernel);

/// One weft.attention.
llvm::LogicalResult emitAttention(KernelFunction &kernel);

/// One weft.grouped_dot.
llvm::LogicalResult emitGroupedMatmul(KernelFunction &kernel);

/// One weft.scatter.
llvm::LogicalResult emitScatter(KernelFunction &kernel);

/// One weft.sort.
llvm::LogicalResult emitSort(KernelFunction &kernel);

} // namespace weft

#endif
