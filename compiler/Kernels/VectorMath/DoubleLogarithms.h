// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Logarithms of f64 vectors, to little more than half an ULP, exact where the result is an integer;
// and inverse hyperbolic functions based on them.
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

  /// log2(x) with relative error 2^-65, 0 < x; infinite for zero and infinity.
  Pair longLog2(Value x);

private:
  /// A base: the logarithms of two and of e to it, each as a sum of two. The first part of that of
  /// two is short, so that its product with any exponent is exact.
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
  /// n = floor(log2(x / sqrt(1/2))); also the bits of x minus those of sqrt(1/2), plus a bias.
  std::pair<Value, Value> exponentOf(Value x);
  /// s with 1 + f = (1 + s) / (1 - s).
  Pair ratioOf(Pair f);
  /// log(2^exponent (1 + f))
  Value logOfParts(Value exponent, Pair f, const Base &base);
  Value log(Value x, const Base &base);
  /// log(2^more (1 + x)) for x that is not denormal; infinite at the pole and NaN beyond.
  Value log1p(Pair x, Value more = {});
};

} // namespace weft

#endif
