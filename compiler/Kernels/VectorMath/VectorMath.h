// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementary functions of f32 and f64 vectors as vector arithmetic; a library call would be needed
// per lane otherwise.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_VECTORMATH_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_VECTORMATH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// Rewrites exponentials, logarithms, powers, trigonometric and hyperbolic functions and their
/// inverses, erf, erfc and remainders of f32 and f64 vectors in `kernel` into arith ops and fma;
/// large angles and quotients are left to the library. A scalar has the value that it has in a
/// vector: of f32, one of `lanes`.
///
/// Largest errors of f64: 1 ULP; of f32, over all floats: exp, exp2, log, log2, log10, sin, cos and
/// pow 1 ULP (0 if the result of an integer power is representable, or that of a logarithm is an
/// integer); expm1, log1p, sinh, cosh, tanh, asin, acos, atan, atan2, asinh, atanh, erf and erfc 2
/// ULP; acosh 2.5 ULP; tan 3 ULP; 1 + erf, computed as one function, 2^-24; remainders are exact.
/// Signed zeros, infinities, NaN, overflow and denormals behave as in IEEE 754's recommended
/// functions (no fast-math).
void expandVectorMath(mlir::func::FuncOp kernel, int64_t lanes);

/// 2^x of an f32 vector with x < 127, to 1 ULP; zero from about -126 down, NaN for NaN. For the
/// exponentials of a softmax, in half the instructions of exp.
mlir::Value emitPowerOfTwo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);

} // namespace weft

#endif
