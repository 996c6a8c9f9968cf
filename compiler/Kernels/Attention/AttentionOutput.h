// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stores an attention's output from scratch to the roots of its kernel: normalized by the sums of
// exponentials, and transposed in registers if features are contiguous.
#ifndef WEFT_COMPILER_KERNELS_ATTENTION_ATTENTIONOUTPUT_H
#define WEFT_COMPILER_KERNELS_ATTENTION_ATTENTIONOUTPUT_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/Epilogue.h"
#include "compiler/Kernels/Emission/RowScratch.h"

namespace weft {

class AttentionOutput : private IndexArithmetic {
public:
  struct Dims {
    mlir::AffineExpr token;                    ///< index of a query
    llvm::SmallVector<mlir::AffineExpr> parts; ///< loop variables of the token; the lane is last
    mlir::AffineExpr feature;
  };

  AttentionOutput(KernelFunction &kernel, ElementEmitter &point, AttentionOp op);

  /// Finds the roots that depend on the result at `index`; fails if one does not elementwise, or if
  /// the kernel has other roots.
  llvm::LogicalResult match(const Index &index, const Dims &dims);

  /// Prefetches for writing the lines of `rows` features from the point's on, which are all stored
  /// at the end. The point has the queries in its lanes.
  void fetch(int64_t rows);

  /// `output`: [feature][query]. The point has the queries in its lanes; `sums` has one vector per
  /// lane group.
  void store(RowScratch &output, llvm::ArrayRef<mlir::Value> sums);

private:
  void storeRoots(const Emitted &result);
  bool isOfQueries(mlir::AffineExpr expr) const;
  unsigned lane() const { return dimOf(dims.parts.back()); }
  static unsigned dimOf(mlir::AffineExpr dim) {
    return mlir::cast<mlir::AffineDimExpr>(dim).getPosition();
  }

  KernelFunction &kernel;
  ElementEmitter &point;
  AttentionOp op;
  int64_t queries;
  Dims dims;
  Index resultIndex; ///< physical index of the result before the epilogue
  llvm::SmallVector<EpilogueRoot> roots;
};

} // namespace weft

#endif
