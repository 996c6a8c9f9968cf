// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands of a reduction that are used again, kept in scratch if recomputing them costs more than
// memory: the exponentials of a softmax, read by their sum and by the result.
#ifndef WEFT_COMPILER_KERNELS_NEST_CACHEDROW_H
#define WEFT_COMPILER_KERNELS_NEST_CACHEDROW_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"
#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

/// A tensor's values along the only dim of a reduction.
class CachedRow {
public:
  /// Chooses an operand of the reduction of `demand` that follows those in `before`, if one is
  /// worth caching.
  static std::optional<CachedRow> choose(KernelFunction &kernel, const AccessAnalysis &demand,
                                         llvm::ArrayRef<std::optional<CachedRow>> before,
                                         const IndexSpace &space);

  bool isOf(mlir::OpOperand &operand) const { return operand.getOperandNumber() == number; }
  /// Stores the tensor's value at the reduction's point.
  void fill(ElementEmitter &point, const Emitted &value) const;
  /// The value at `at`, once the row has been filled; nothing for other tensors and rows.
  std::optional<Emitted> find(ElementEmitter &point, mlir::Value wanted,
                              llvm::ArrayRef<mlir::AffineExpr> at) const;

private:
  /// The position of `at` in the row.
  std::optional<mlir::AffineExpr> placeOf(llvm::ArrayRef<mlir::AffineExpr> at,
                                          const IndexSpace &space) const;

  unsigned number = 0; ///< number of the operand
  mlir::Value tensor;
  Index index;               ///< one of its entries is `variable`
  mlir::AffineExpr variable; ///< the reduced dim
  Buffer row;
};

} // namespace weft

#endif
