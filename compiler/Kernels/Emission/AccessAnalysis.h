// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a point of a tensor needs: the memory it reads and the reductions it stands on,
// found symbolically, ahead of emission, with the index arithmetic of ElementEmitter.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_ACCESSANALYSIS_H
#define WEFT_COMPILER_KERNELS_EMISSION_ACCESSANALYSIS_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/ElementEmitter.h"

namespace weft {

/// One read of a kernel argument. A gather's position is known up to what it was given: only
/// its innermost index, if that is none of those.
struct Access {
  mlir::Value tensor;
  std::optional<mlir::AffineExpr> position; ///< row-major
  std::optional<mlir::AffineExpr> innermost;
};

/// A reduction wanted at one index of its result.
struct ReductionDemand {
  mlir::linalg::GenericOp generic;
  Index index;                             ///< of its results
  Index iteration;                         ///< parallel dims from `index`, reduced dims new
  llvm::SmallVector<unsigned> reducedDims; ///< of the index space, outermost first
  llvm::SmallVector<Access> accesses;      ///< reads of its body

  /// Whether its index changes with `dim`.
  bool isWantedFor(unsigned dim) const;
  /// Elementwise reads of its body where vectors run along the best of its dims.
  int64_t leastStrided(const IndexSpace &space) const;
};

/// A running reduction wanted at one index: everywhere along its dim, so line by line.
struct ScanDemand {
  CumulativeOp op;
  Index index;        ///< at which the result is wanted
  Index operandIndex; ///< `index` with a loop variable of its own along the dim
  unsigned dim;       ///< of the result, scanned
  unsigned along;     ///< that variable

  mlir::AffineExpr line() const { return index[dim]; }
};

struct AccessAnalysis {
  llvm::SmallVector<ScanDemand, 0> scans;
  llvm::SmallVector<ReductionDemand, 0> reductions; ///< what one needs comes ahead of it
  llvm::SmallVector<Access> accesses;               ///< outside the reductions
  llvm::SmallVector<std::pair<mlir::Value, Index>> visited;
  bool complete = true;    ///< false where it may read more than is listed
  bool readsIndex = false; ///< some body computes with the index of its loop
  int64_t scalarOps = 0;   ///< body ops for one point, outside the reductions

  /// Ops for `elements`, and for the reductions at `points`.
  int64_t flops(const IndexSpace &space, int64_t points, int64_t elements) const;

  /// Whether a reduction is wanted anew for every value of `dim`.
  bool reducesFor(unsigned dim) const;

  const ReductionDemand *find(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> index) const;
};

/// How badly vectors along `dim` suit `accesses`: the number of element-wise accesses.
int64_t stridedAccesses(llvm::ArrayRef<Access> accesses, unsigned dim, const IndexSpace &space);

/// The demand of `tensor` at `index`; reduced dims are added to `space`.
AccessAnalysis demandOf(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> index,
                        IndexSpace &space);

} // namespace weft

#endif
