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
  /// Of scores that are scaled already.
  SoftmaxExponentials(mlir::OpBuilder &builder, mlir::Location loc, mlir::VectorType type)
      : builder(builder), loc(loc), type(type) {}
  /// Of f32 scores that `scale` > 0 still has to multiply.
  SoftmaxExponentials(mlir::OpBuilder &builder, mlir::Location loc, mlir::VectorType type,
                      double scale)
      : builder(builder), loc(loc), type(type), isRaw(true), unit(scale * std::numbers::log2e) {}

  /// What `of` wants to be given for a maximum. That of queries which see no key is -inf: their
  /// powers are then zeros, not NaN.
  mlir::Value shiftOf(mlir::Value maximum);
  /// exp(scale * (score - maximum)) for the maximum's shift.
  mlir::Value of(mlir::Value score, mlir::Value shift);
  /// What turns powers of an earlier `maximum` into such with `shift`.
  mlir::Value scaleBetween(mlir::Value maximum, mlir::Value shift);

private:
  mlir::Value ofDifference(mlir::Value difference);
  mlir::Value isHidden(mlir::Value maximum);
  mlir::Value splat(double value);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::VectorType type;
  bool isRaw = false;
  double unit = 1.0; ///< of a raw score, so that a power of two is taken of it
};

} // namespace weft

#endif
