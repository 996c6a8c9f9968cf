// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Logarithms of f64 vectors, to within little more than half an ULP, and whole where they are; and
// inverses of hyperbolic functions, which are made of them.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_DOUBLELOGARITHMS_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_DOUBLELOGARITHMS_H

#include "compiler/Kernels/VectorMath/VectorLogarithms.h"

namespace weft {

class DoubleLogarithms : public VectorLogarithms {
public:
  using VectorLogarithms::VectorLogarithms;

  Value log(Value x);
  Value log2(Value x);
  Value log10(Value x);
  Value log1p(Value x);
  Value asinh(Value x);
  Value acosh(Value x);
  Value atanh(Value x);

  /// log2(x) to 2^-65 of its value, 0 < x; that of zero and infinity is infinite.
  Pair longLog2(Value x);

private:
  /// A logarithm's base: that of two and that of e in it, each as a sum. The first of two is short,
  /// so that its product with any exponent is exact.
  struct Base {
    double octaveHigh, octaveLow;
    double unitHigh, unitLow;
  };
  static const Base ofE, ofTwo, ofTen;

  /// x = 2^exponent (1 + f), sqrt(1/2) <= 1 + f < sqrt(2).
  struct Parts {
    Value exponent, f;
  };
  Parts partsOf(Value x);
  /// n = floor(log2(x / sqrt(1/2))); also the bits of x less those of sqrt(1/2), above a bias.
  std::pair<Value, Value> exponentOf(Value x);
  /// (1 + f) = (1 + s) / (1 - s) for this s.
  Pair ratioOf(Pair f);
  /// log(2^exponent (1 + f))
  Value logOfParts(Value exponent, Pair f, const Base &base);
  Value log(Value x, const Base &base);
  /// log(2^more (1 + x)), x no denormal, and its value at the pole and beyond.
  Value log1p(Pair x, Value more = {});
};

} // namespace weft

#endif
