// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trigonometric functions of f32 vectors; sine and cosine also of f64 vectors.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_VECTORTRIGONOMETRY_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_VECTORTRIGONOMETRY_H

#include "compiler/Kernels/VectorMath/VectorArithmetic.h"

namespace weft {

class VectorTrigonometry : protected VectorArithmetic {
public:
  VectorTrigonometry(mlir::ImplicitLocOpBuilder builder, mlir::VectorType type)
      : VectorArithmetic(builder, type) {}

  /// The sine of x + `quarters` * pi / 2, as the library's `function` computes it.
  Value sine(Value x, int32_t quarters, mlir::Operation *function);
  Value tan(Value x, mlir::Operation *function);
  Value asin(Value x);
  Value acos(Value x);
  Value atan(Value x);
  Value atan2(Value y, Value x);

protected:
  /// An angle minus the nearest multiple of pi / 2, whose index is the low bits of `number`; and
  /// its square.
  struct Turn {
    Value number;
    Pair rest;
    Value squared;
  };
  Turn reduce(Value x);
  /// Of the rest of a turn, as a sum whose first part is the larger.
  Pair longSine(const Turn &turn);
  Pair longCosine(const Turn &turn);
  Value isOdd(Value number);

private:
  Value sineOfShort(Value x, int32_t quarters);
  /// asin(x) - x, 0 <= x <= 1/2, of x and its square.
  Value restOfAsin(Value x, Value squared);
  /// 2 asin(sqrt((1 - x) / 2)) = acos(x), 1/2 <= x, as a sum whose first part is the larger.
  std::pair<Value, Value> acosOfLarge(Value x);
  /// atan(x), 0 <= x <= 1.
  Value atanOfRatio(Value x);
  /// `quarters` * pi / 2 - (x + low).
  Value angleLess(int32_t quarters, Value x, Value low);
};

} // namespace weft

#endif
