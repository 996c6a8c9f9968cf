// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The exponentials of a softmax, exp(score - maximum), for vectors of scores.
#ifndef WEFT_COMPILER_KERNELS_ATTENTION_SOFTMAXEXPONENTIALS_H
#define WEFT_COMPILER_KERNELS_ATTENTION_SOFTMAXEXPONENTIALS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include <numbers>

namespace weft {

class SoftmaxExponentials {
public:
  /// For scores that are already scaled.
  SoftmaxExponentials(mlir::OpBuilder &builder, mlir::Location loc, mlir::VectorType type)
      : builder(builder), loc(loc), type(type) {}
  /// For f32 scores still to be multiplied by `scale` > 0, here fused into the exponential.
  SoftmaxExponentials(mlir::OpBuilder &builder, mlir::Location loc, mlir::VectorType type,
                      double scale)
      : builder(builder), loc(loc), type(type), isRaw(true), unit(scale * std::numbers::log2e) {}

  /// The argument `shift` of `of` for a maximum. -inf, of queries that see no key, becomes 0, so
  /// that their exponentials are zero, not NaN.
  mlir::Value shiftOf(mlir::Value maximum);
  /// exp(scale * (score - maximum)) for the maximum's shift.
  mlir::Value of(mlir::Value score, mlir::Value shift);
  /// The factor that rescales exponentials with an earlier `maximum` to `shift`.
  mlir::Value scaleBetween(mlir::Value maximum, mlir::Value shift);

private:
  mlir::Value ofDifference(mlir::Value difference);
  mlir::Value isHidden(mlir::Value maximum);
  mlir::Value splat(double value);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::VectorType type;
  bool isRaw = false;
  double unit = 1.0; ///< factor of a raw score for the power of two: scale * log2(e)
};

} // namespace weft

#endif
