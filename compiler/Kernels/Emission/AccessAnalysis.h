// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Symbolic analysis, before emission, of what one element of a tensor needs: the memory it reads
// and the reductions it depends on, with the index arithmetic of ElementEmitter.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_ACCESSANALYSIS_H
#define WEFT_COMPILER_KERNELS_EMISSION_ACCESSANALYSIS_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/ElementEmitter.h"

namespace weft {

/// One read of a kernel argument. A gather has no affine position: only its innermost index is
/// known, and only if it is a loop index.
struct Access {
  mlir::Value tensor;
  std::optional<mlir::AffineExpr> position; ///< row-major
  std::optional<mlir::AffineExpr> innermost;
};

/// A reduction needed at one index of its result.
struct ReductionDemand {
  mlir::linalg::GenericOp generic;
  Index index;     ///< index into its results
  Index iteration; ///< point of its loops: parallel dims from `index`, reduced dims new
  llvm::SmallVector<unsigned> reducedDims; ///< of the index space, outermost first
  llvm::SmallVector<Access> accesses;      ///< reads of its body

  /// Whether its index depends on `dim`.
  bool isWantedFor(unsigned dim) const;
  /// Strided reads of its body, vectorized along the best of its reduced dims.
  int64_t leastStrided(const IndexSpace &space) const;
};

/// A scan needed at one index: it is computed along its whole dim, row by row.
struct ScanDemand {
  CumulativeOp op;
  Index index;        ///< index of the result that is needed
  Index operandIndex; ///< `index` with a new loop variable along the scanned dim
  unsigned dim;       ///< scanned dim of the result
  unsigned along;     ///< loop variable along the scanned dim

  mlir::AffineExpr line() const { return index[dim]; }
};

struct AccessAnalysis {
  llvm::SmallVector<ScanDemand, 0> scans;
  llvm::SmallVector<ReductionDemand, 0> reductions; ///< each after those it needs
  llvm::SmallVector<Access> accesses;               ///< reads outside the reductions
  llvm::SmallVector<std::pair<mlir::Value, Index>> visited;
  bool complete = true;    ///< false if there may be reads that are not listed
  bool readsIndex = false; ///< some body uses linalg.index
  int64_t scalarOps = 0;   ///< body ops per element, outside the reductions

  /// Ops for `elements` elements, and for reductions at `points` points.
  int64_t flops(const IndexSpace &space, int64_t points, int64_t elements) const;

  /// Whether a reduction has to be recomputed for each value of `dim`.
  bool reducesFor(unsigned dim) const;

  const ReductionDemand *find(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> index) const;
};

/// Cost of vectorizing `accesses` along `dim`: the number that are not contiguous (nor uniform).
int64_t stridedAccesses(llvm::ArrayRef<Access> accesses, unsigned dim, const IndexSpace &space);

/// Analyses `tensor` at `index`; reduced dims are added to `space`.
AccessAnalysis demandOf(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> index,
                        IndexSpace &space);

} // namespace weft

#endif
