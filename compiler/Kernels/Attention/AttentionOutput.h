// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An attention's output on its way from scratch into the roots of its kernel: divided by the
// sums of exponentials, through squares of registers where features lie beside one another.
#ifndef WEFT_COMPILER_KERNELS_ATTENTION_ATTENTIONOUTPUT_H
#define WEFT_COMPILER_KERNELS_ATTENTION_ATTENTIONOUTPUT_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/Epilogue.h"
#include "compiler/Kernels/Emission/RowScratch.h"

namespace weft {

class AttentionOutput : private IndexArithmetic {
public:
  struct Dims {
    mlir::AffineExpr token;                    ///< number of a query
    llvm::SmallVector<mlir::AffineExpr> parts; ///< what it is made of; the lane comes last
    mlir::AffineExpr feature;
  };

  AttentionOutput(KernelFunction &kernel, ElementEmitter &point, AttentionOp op);

  /// Finds what is stored where the result has `index`; fails where that is not elementwise, or
  /// not all that the kernel stores.
  llvm::LogicalResult match(const Index &index, const Dims &dims);

  /// Asks for the lines of `rows` features from the point's on, which are stored all at once at
  /// the end. The point has the lanes of queries.
  void fetch(int64_t rows);

  /// `output`: features in rows, queries in lanes. The point has the lanes of queries; `sums`
  /// has one vector for each group of them.
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
  Index resultIndex; ///< physical, before the epilogue
  llvm::SmallVector<EpilogueRoot> roots;
};

} // namespace weft

#endif
