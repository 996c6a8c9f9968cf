// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a function computes from weights, buffers and constants alone: the entry @bind could
// prepare it once.
#ifndef WEFT_COMPILER_TRANSFORMS_PREPAREDVALUES_H
#define WEFT_COMPILER_TRANSFORMS_PREPAREDVALUES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

class PreparedValues {
public:
  explicit PreparedValues(mlir::func::FuncOp function);

  /// Whether `value` depends on no input of the call.
  bool contains(mlir::Value value) const { return prepared.contains(value); }
  /// Whether it depends on a weight or buffer, too.
  bool dependsOnWeight(mlir::Value value) const { return ofWeights.contains(value); }

private:
  llvm::DenseSet<mlir::Value> prepared, ofWeights;
};

/// What `value`, (n, c, s...), repeats for each channel, (c), or null.
mlir::Value repeatedForChannels(mlir::Value value);

} // namespace weft

#endif
