// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions between angles and ratios, of f32 vectors; sine and cosine of f64 vectors.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_VECTORTRIGONOMETRY_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_VECTORTRIGONOMETRY_H

#include "compiler/Kernels/VectorMath/VectorArithmetic.h"

namespace weft {

class VectorTrigonometry : protected VectorArithmetic {
public:
  VectorTrigonometry(mlir::ImplicitLocOpBuilder builder, mlir::VectorType type)
      : VectorArithmetic(builder, type) {}

  /// The sine of x + `quarters` * pi / 2, which is what `function` of the library computes.
  Value sine(Value x, int32_t quarters, mlir::Operation *function);
  Value tan(Value x, mlir::Operation *function);
  Value asin(Value x);
  Value acos(Value x);
  Value atan(Value x);
  Value atan2(Value y, Value x);

protected:
  /// An angle less the nearest multiple of pi / 2, whose number is the low bits of an integer; its
  /// square.
  struct Turn {
    Value number;
    Pair rest;
    Value squared;
  };
  Turn reduce(Value x);
  /// Of the rest, as a sum whose first is the larger.
  Pair longSine(const Turn &turn);
  Pair longCosine(const Turn &turn);
  Value isOdd(Value number);

private:
  Value sineOfShort(Value x, int32_t quarters);
  /// asin(x) - x, 0 <= x <= 1/2, of x and its square.
  Value restOfAsin(Value x, Value squared);
  /// 2 asin(sqrt((1 - x) / 2)) = acos(x), 1/2 <= x, as a sum of which the first is the larger.
  std::pair<Value, Value> acosOfLarge(Value x);
  /// atan(x), 0 <= x <= 1.
  Value atanOfRatio(Value x);
  /// `quarters` * pi / 2 - (x + low).
  Value angleLess(int32_t quarters, Value x, Value low);
};

} // namespace weft

#endif
