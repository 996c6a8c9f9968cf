// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Logarithms of f32 vectors, and inverse hyperbolic functions based on them.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_VECTORLOGARITHMS_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_VECTORLOGARITHMS_H

#include "compiler/Kernels/VectorMath/VectorArithmetic.h"

namespace weft {

class VectorLogarithms : protected VectorArithmetic {
public:
  VectorLogarithms(mlir::ImplicitLocOpBuilder builder, mlir::VectorType type)
      : VectorArithmetic(builder, type) {}

  Value log(Value x);
  Value log1p(Value x);
  Value log2(Value x);
  Value log10(Value x);
  Value asinh(Value x);
  Value acosh(Value x);
  Value atanh(Value x);

protected:
  Value root(Value x) { return mlir::math::SqrtOp::create(b, x); }
  /// `log`, valid elsewhere, with the values at the pole and beyond it for `x`.
  Value withPole(Value x, double pole, Value log);

private:
  /// log(1 + x), or log(2 x) for lanes in which x is so `large` that adding one is below rounding.
  Value log1pOrLogOfTwice(Value large, Value x);
  /// log(2^exponent * (1 + f)), sqrt(1/2) <= 1 + f < sqrt(2).
  Value logOfParts(Value exponent, Value f);
  /// n = floor(log2(x / sqrt(1/2))); also the bits of x minus those of sqrt(1/2).
  std::pair<Value, Value> exponentOf(Value x);
};

} // namespace weft

#endif
