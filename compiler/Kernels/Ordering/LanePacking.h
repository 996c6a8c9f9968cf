// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lanes that a mask chooses, moved to the front of their vector.
#ifndef WEFT_COMPILER_KERNELS_ORDERING_LANEPACKING_H
#define WEFT_COMPILER_KERNELS_ORDERING_LANEPACKING_H

#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

class LanePacking {
public:
  explicit LanePacking(KernelFunction &kernel) : kernel(kernel), builder(kernel.builder) {}

  /// How many lanes `mask` chooses, index.
  mlir::Value numberOf(mlir::Value mask);

  /// The elements in lanes that `mask` chooses, before others, which are unspecified. Elements of
  /// 32 or 64 bits that fill a register.
  mlir::Value packed(mlir::Value elements, mlir::Value mask);

  /// A mask of the first `number` (index) of `lanes` lanes.
  mlir::Value first(mlir::Value number, int64_t lanes);

private:
  mlir::Value bitsOf(mlir::Value mask);
  mlir::Value permuted(mlir::Value elements, mlir::Value mask);
  mlir::Value permutations(int64_t lanes);

  KernelFunction &kernel;
  mlir::OpBuilder &builder;
};

} // namespace weft

#endif
