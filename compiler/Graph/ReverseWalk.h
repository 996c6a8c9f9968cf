// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reverse-mode differentiation of the ops of a block: from the last to the first, each turns the
// cotangents of its results into those of its operands.
#ifndef WEFT_COMPILER_GRAPH_REVERSEWALK_H
#define WEFT_COMPILER_GRAPH_REVERSEWALK_H

#include "compiler/Graph/Derivative.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace weft {

class ReverseWalk {
public:
  /// Writes at `builder`'s insertion point.
  explicit ReverseWalk(mlir::OpBuilder &builder) : builder(builder) {}

  /// Marks `value` as one through which a wanted gradient passes.
  void activate(mlir::Value value) { active.insert(value); }
  bool isActive(mlir::Value value) const { return active.contains(value); }
  /// Marks what `ops`, in order, compute of active values.
  void activateResults(llvm::ArrayRef<mlir::Operation *> ops);

  /// Cotangents of `value` count for `of`.
  void alias(mlir::Value value, mlir::Value of) { aliases[value] = of; }
  /// Adds to the cotangent of `value`, if it is active.
  void accumulate(mlir::Value value, mlir::Value cotangent);
  /// Null for zero.
  mlir::Value cotangentOf(mlir::Value value) const { return cotangents.lookup(value); }

  /// Fails, with a diagnostic, at an op without a derivative.
  llvm::LogicalResult run(llvm::ArrayRef<mlir::Operation *> ops);

  /// The visited ops whose rules repeat steps of their decomposition.
  llvm::ArrayRef<mlir::Operation *> getRepeated() const { return repeated; }
  /// Decomposes them, so that those steps are there once.
  llvm::LogicalResult decomposeRepeated();

private:
  llvm::LogicalResult visit(mlir::Operation *op);
  /// What cotangents of `value` count for.
  mlir::Value countedFor(mlir::Value value) const;

  mlir::OpBuilder &builder;
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseMap<mlir::Value, mlir::Value> cotangents, aliases;
  llvm::SmallVector<mlir::Operation *> repeated;
};

} // namespace weft

#endif
