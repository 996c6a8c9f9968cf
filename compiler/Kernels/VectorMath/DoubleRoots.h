// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Inverse square roots of f64 vectors.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_DOUBLEROOTS_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_DOUBLEROOTS_H

#include "compiler/Kernels/VectorMath/VectorArithmetic.h"

namespace weft {

class DoubleRoots : private VectorArithmetic {
public:
  DoubleRoots(mlir::ImplicitLocOpBuilder builder, mlir::VectorType type)
      : VectorArithmetic(builder, type) {}

  /// 1 / sqrt(x)
  Value rsqrt(Value x);
};

} // namespace weft

#endif
