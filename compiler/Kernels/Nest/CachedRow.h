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
  /// The operand of that number, for which `canBe` holds.
  CachedRow(const ReductionDemand &reduction, unsigned operand, const IndexSpace &space);
  /// Whether the operand is read along the only reduced dim.
  static bool canBe(const ReductionDemand &reduction, int64_t operand);

  mlir::Type elementType() const { return mlir::getElementTypeOrSelf(tensor.getType()); }
  mlir::Value getTensor() const { return tensor; }
  llvm::ArrayRef<mlir::AffineExpr> at() const { return index; }
  /// The position of the tensor's element at `at` in the row, if it is there.
  std::optional<mlir::AffineExpr> placeOf(llvm::ArrayRef<mlir::AffineExpr> at,
                                          const IndexSpace &space) const;

  /// Reserves scratch, which the following need.
  void allocate(KernelFunction &kernel);

  bool isOf(mlir::OpOperand &operand) const { return operand.getOperandNumber() == number; }
  /// Stores the tensor's value at the reduction's point.
  void fill(ElementEmitter &point, const Emitted &value) const;
  /// The value at `at`, once the row has been filled; nothing for other tensors and rows.
  std::optional<Emitted> find(ElementEmitter &point, mlir::Value wanted,
                              llvm::ArrayRef<mlir::AffineExpr> at) const;

private:
  unsigned number; ///< of the operand
  int64_t extent;
  mlir::Value tensor;
  Index index;               ///< one of its entries is `variable`
  mlir::AffineExpr variable; ///< the reduced dim
  Buffer row;
};

} // namespace weft

#endif
