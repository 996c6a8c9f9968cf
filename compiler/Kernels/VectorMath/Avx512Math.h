// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementary functions of sixteen float32 lanes by what AVX-512 alone has: powers of two and
// exponents and mantissas of any float, denormals and infinities among them, in one instruction,
// and approximations of reciprocals and of roots, in place of divisions and roots, which take
// Intel's processors a dozen multiplications.
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
  /// function: the root as an instruction, for numbers whose square has no float.
  Value sqrt(Value x, mlir::Operation *function);

private:
  /// x = 2^exponent m, m c = 1 + rest, of a c that each lane picks by `index`.
  struct Parts {
    Value exponent, index, rest;
  };
  Parts partsOf(Value x);
  /// Its operands are followed by all lanes' mask and, unless it is of approximations, the
  /// rounding at hand.
  Value call(llvm::StringRef name, mlir::ValueRange operands, bool rounds = true);
  /// x 2^n, n rounded down.
  Value scaled(Value x, Value n) { return call("mask.scalef.ps.512", {x, n, x}); }
  Value reciprocal(Value x) { return call("rcp14.ps.512", {x, x}, /*rounds=*/false); }
};

/// The value of a function of f32 vectors that is shorter in AVX-512, or null.
mlir::Value expandForAvx512(mlir::Operation *op);

} // namespace weft

#endif
