// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementary functions of 16 float32 lanes with AVX-512 instructions: vscalefps, vgetexpps and
// vgetmantps, which handle denormals and infinities, and approximate reciprocals and square roots
// (rcp14, rsqrt14) instead of divisions and roots, which cost a dozen multiplications on Intel's
// processors.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_AVX512MATH_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_AVX512MATH_H

#include "compiler/Kernels/VectorMath/VectorArithmetic.h"

namespace weft {

class Avx512Math : private VectorArithmetic {
public:
  Avx512Math(mlir::ImplicitLocOpBuilder builder, mlir::VectorType type)
      : VectorArithmetic(builder, type) {}

  Value exp(Value x);
  Value log(Value x);
  Value log2(Value x);
  Value tanh(Value x);
  /// `function`: falls back to the sqrt instruction for numbers whose residual would not be normal.
  Value sqrt(Value x, mlir::Operation *function);

private:
  /// x = 2^exponent m and m c = 1 + rest, for a table entry c picked per lane by `index`.
  struct Parts {
    Value exponent, index, rest;
  };
  Parts partsOf(Value x);
  /// Calls an AVX-512 intrinsic. Appends an all-ones mask and, unless it is an approximation
  /// without one, the rounding mode to its operands.
  Value call(llvm::StringRef name, mlir::ValueRange operands, bool rounds = true);
  /// x 2^n, n rounded down.
  Value scaled(Value x, Value n) { return call("mask.scalef.ps.512", {x, n, x}); }
  Value reciprocal(Value x) { return call("rcp14.ps.512", {x, x}, /*rounds=*/false); }
};

/// The value of a function of f32 vectors that has a shorter AVX-512 form, or null.
mlir::Value expandForAvx512(mlir::Operation *op);

} // namespace weft

#endif
