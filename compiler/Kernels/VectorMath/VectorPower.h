// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Powers of f32 vectors, by logarithms in f64: an error of the logarithm is multiplied by the
// exponent. Also logarithms to other bases, exact for integer powers.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_VECTORPOWER_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_VECTORPOWER_H

#include "compiler/Kernels/VectorMath/VectorArithmetic.h"

namespace weft {

/// Arguments and results are of `type`, f32.
class VectorPower : protected VectorArithmetic {
public:
  VectorPower(mlir::ImplicitLocOpBuilder builder, mlir::VectorType type)
      : VectorArithmetic(builder, type) {}

  Value pow(Value x, Value y);
  Value log2(Value x);
  Value log10(Value x);

protected:
  /// `magnitude`, |x|^y, with the sign, or NaN, for a negative base x.
  Value ofSignedBase(Value x, Value y, Value magnitude);

private:
  /// log2(x) times `factor`, rounded once.
  Value scaledLog(Value x, double factor);
};

} // namespace weft

#endif
