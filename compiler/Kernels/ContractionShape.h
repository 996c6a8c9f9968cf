// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a contraction looks like to the register tile: loop dims by role, and where its
// operands lie as linear functions of them.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTIONSHAPE_H
#define WEFT_COMPILER_KERNELS_CONTRACTIONSHAPE_H

#include "compiler/Kernels/KernelFunction.h"

namespace weft {

struct ContractionShape {
  mlir::linalg::GenericOp generic;
  mlir::Value lhs, rhs; ///< kernel arguments
  mlir::AffineExpr lhsPosition, rhsPosition, resultPosition;
  Index resultIndex;                   ///< of the generic's result
  llvm::SmallVector<unsigned> batch;   ///< in both operands and the result
  llvm::SmallVector<unsigned> lhsFree; ///< in lhs and the result
  llvm::SmallVector<unsigned> rhsFree;
  llvm::SmallVector<unsigned> reduced;

  /// Describe `generic`, whose loops become dims of `space`; neighbouring dims that are
  /// contiguous everywhere are merged. Fails unless it sums products of floats of one type
  /// that are read from kernel arguments with constant strides.
  static llvm::FailureOr<ContractionShape> match(mlir::linalg::GenericOp generic,
                                                 IndexSpace &space);

  int64_t flops(const IndexSpace &space) const;
};

} // namespace weft

#endif
