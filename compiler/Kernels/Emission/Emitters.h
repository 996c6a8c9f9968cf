// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One function per kind of kernel. Each fills KernelFunction::emitted as the kernel's schedule
// says, or fails.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_EMITTERS_H
#define WEFT_COMPILER_KERNELS_EMISSION_EMITTERS_H

#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

/// Anything that ElementEmitter can follow.
llvm::LogicalResult emitLoopNest(KernelFunction &kernel);

/// Rows computed from token blocks (lanes are tokens) and stored row-major. Fails on all others.
llvm::LogicalResult emitTokenBlocksToRows(KernelFunction &kernel);

/// Row-major rows, reduced, and stored to token blocks (lanes are tokens). Fails on all others.
llvm::LogicalResult emitRowsToTokenBlocks(KernelFunction &kernel);

/// One weft.winograd_conv with its epilogue.
llvm::LogicalResult emitWinograd(KernelFunction &kernel);

/// Contractions with their epilogue. Fails on shapes that have no register tile.
llvm::LogicalResult emitContraction(KernelFunction &kernel);

/// Skinny contractions with both operands contiguous along the reduction.
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
