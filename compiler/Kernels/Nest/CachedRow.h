// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a reduction reads and others want as well, kept in scratch where computing it again costs
// more than memory: the exponentials of a softmax, which its sum and then its result want.
#ifndef WEFT_COMPILER_KERNELS_NEST_CACHEDROW_H
#define WEFT_COMPILER_KERNELS_NEST_CACHEDROW_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"
#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

/// One tensor along the only dim of a reduction.
class CachedRow {
public:
  /// Of an operand of `demand`'s reduction behind those that `before` belongs to, if any is worth
  /// it.
  static std::optional<CachedRow> choose(KernelFunction &kernel, const AccessAnalysis &demand,
                                         llvm::ArrayRef<std::optional<CachedRow>> before,
                                         const IndexSpace &space);

  bool isOf(mlir::OpOperand &operand) const { return operand.getOperandNumber() == number; }
  /// Keeps the tensor's value at the reduction's point.
  void fill(ElementEmitter &point, const Emitted &value) const;
  /// Its value at `index`, once the row has been filled; nothing for other tensors and rows.
  std::optional<Emitted> find(ElementEmitter &point, mlir::Value wanted,
                              llvm::ArrayRef<mlir::AffineExpr> at) const;

private:
  /// Where in the row `at` lies.
  std::optional<mlir::AffineExpr> placeOf(llvm::ArrayRef<mlir::AffineExpr> at,
                                          const IndexSpace &space) const;

  unsigned number = 0; ///< of the operand
  mlir::Value tensor;
  Index index;               ///< of which one is the variable
  mlir::AffineExpr variable; ///< the reduction's dim
  Buffer row;
};

} // namespace weft

#endif
