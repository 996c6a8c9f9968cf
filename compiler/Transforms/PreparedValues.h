// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values that depend on weights, buffers and constants alone, which the entry @bind could compute
// once.
#ifndef WEFT_COMPILER_TRANSFORMS_PREPAREDVALUES_H
#define WEFT_COMPILER_TRANSFORMS_PREPAREDVALUES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

class PreparedValues {
public:
  explicit PreparedValues(mlir::func::FuncOp function);

  /// Whether `value` does not depend on inputs of the call.
  bool contains(mlir::Value value) const { return prepared.contains(value); }
  /// Whether it also depends on a weight or buffer.
  bool dependsOnWeight(mlir::Value value) const { return ofWeights.contains(value); }

private:
  llvm::DenseSet<mlir::Value> prepared, ofWeights;
};

/// The (c) tensor that `value`, (n, c, s...), broadcasts along channels, or null.
mlir::Value repeatedForChannels(mlir::Value value);

} // namespace weft

#endif
