// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exponentials of f64 vectors that need double-double sums to be within 1 ULP; exp is in
// VectorExponentials.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_DOUBLEEXPONENTIALS_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_DOUBLEEXPONENTIALS_H

#include "compiler/Kernels/VectorMath/VectorExponentials.h"

namespace weft {

class DoubleExponentials : public VectorExponentials {
public:
  using VectorExponentials::VectorExponentials;

  Value exp2(Value x);
  Value expm1(Value x);
  Value sinh(Value x);
  Value cosh(Value x);
  Value tanh(Value x);
  Value erf(Value x);

  /// 2^(x.high + x.low); the low part is ignored if the power is zero or infinite.
  Value exp2(Pair x);

private:
  /// x = n + fraction, |fraction| <= 1/2.
  struct Exponent {
    Value biased; ///< an integer whose low bits are n + 2 bias
    Value fraction;
    Value isInside; ///< whether x was not clamped
  };
  Exponent split(Value x);
  /// exp(|x|) = 2^n power, and inverse = 2^(-2 n) / power, for sums to be multiplied by 2^(n - 1);
  /// the low bits of `biased` are n - 1 + 2 bias.
  struct Opposite {
    Value biased;
    Pair power;
    Value inverse;
  };
  Opposite opposite(Value x);
};

} // namespace weft

#endif
