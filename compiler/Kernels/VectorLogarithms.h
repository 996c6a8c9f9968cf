// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Logarithms of f32 vectors.
#ifndef WEFT_COMPILER_KERNELS_VECTORLOGARITHMS_H
#define WEFT_COMPILER_KERNELS_VECTORLOGARITHMS_H

#include "compiler/Kernels/VectorArithmetic.h"

namespace weft {

class VectorLogarithms : protected VectorArithmetic {
public:
  VectorLogarithms(mlir::ImplicitLocOpBuilder builder, mlir::VectorType type)
      : VectorArithmetic(builder, type) {}

  Value log(Value x);
  Value log1p(Value x);
  Value log2(Value x);
  Value log10(Value x);

protected:
  /// The values of log at and beyond its pole, for `x` with `log` right elsewhere.
  Value withPole(Value x, double pole, Value log);

private:
  /// log(2^exponent * (1 + f)), sqrt(1/2) <= 1 + f < sqrt(2).
  Value logOfParts(Value exponent, Value f);
  /// n = floor(log2(x / sqrt(1/2))); also the bits of x less those of sqrt(1/2).
  std::pair<Value, Value> exponentOf(Value x);
};

} // namespace weft

#endif
