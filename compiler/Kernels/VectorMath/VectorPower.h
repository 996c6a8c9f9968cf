// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Powers of f32 vectors, by logarithms in f64: the last bits of one count as many times as its
// product with the exponent is large. Logarithms to other bases, which are whole of whole powers.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_VECTORPOWER_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_VECTORPOWER_H

#include "compiler/Kernels/VectorMath/VectorArithmetic.h"

namespace weft {

/// Values of `type`, f32, go in and out.
class VectorPower : protected VectorArithmetic {
public:
  VectorPower(mlir::ImplicitLocOpBuilder builder, mlir::VectorType type)
      : VectorArithmetic(builder, type) {}

  Value pow(Value x, Value y);
  Value log2(Value x);
  Value log10(Value x);

protected:
  /// What the sign of the base makes of `magnitude`, |x|^y.
  Value ofSignedBase(Value x, Value y, Value magnitude);

private:
  /// log2(x) times `factor`, rounded once.
  Value scaledLog(Value x, double factor);
};

} // namespace weft

#endif
