// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes primitive ops at the precision that a composite computes in: f32 for bf16 and
// f16, as torch does, and the operand's own type otherwise.
#ifndef WEFT_COMPILER_GRAPH_COMPUTEBUILDER_H
#define WEFT_COMPILER_GRAPH_COMPUTEBUILDER_H

#include "compiler/Graph/Graph.h"

namespace weft {

class ComputeBuilder {
public:
  /// Builds at `builder`'s insertion point for an operand of element type `element`.
  ComputeBuilder(mlir::OpBuilder &builder, mlir::Location location, mlir::Type element);

  template <typename OpTy, typename... Args> mlir::Value create(Args &&...args) {
    return OpTy::create(builder, location, std::forward<Args>(args)...);
  }

  /// `value` in the type computed in.
  mlir::Value enter(mlir::Value value);
  /// `value` in the element type of the composite's result.
  mlir::Value leave(mlir::Value value, mlir::Type element);

  /// A constant of `like`'s type whose elements are all `value`.
  mlir::Value splat(mlir::Value like, double value);

  /// Reduces `dims`; the other dims keep their places in memory.
  mlir::Value reduce(ReduceKind kind, mlir::Value value, llvm::ArrayRef<int64_t> dims);
  /// The mean over `dims`.
  mlir::Value mean(mlir::Value value, llvm::ArrayRef<int64_t> dims);
  /// Their mean, rounded once: of equal elements it is what they are.
  mlir::Value exactMean(mlir::Value value, llvm::ArrayRef<int64_t> dims);

  /// Repeats `value`, whose dims are the dims `places` of `like`, to the type of `like`.
  mlir::Value broadcast(mlir::Value value, mlir::Value like, llvm::ArrayRef<int64_t> places);
  /// Undoes the loss of `dims` in reduce by repeating.
  mlir::Value unreduce(mlir::Value reduced, mlir::Value like, llvm::ArrayRef<int64_t> dims);

  /// `value` under `shape` and `layout`.
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape, LayoutAttr layout = {});

  /// 1 / sqrt(variance + eps), from correctly rounded steps.
  mlir::Value inverseDeviation(mlir::Value variance, double eps);

private:
  mlir::Value convert(mlir::Value value, mlir::Type element);

  mlir::OpBuilder &builder;
  mlir::Location location;
  mlir::Type compute;
};

} // namespace weft

#endif
