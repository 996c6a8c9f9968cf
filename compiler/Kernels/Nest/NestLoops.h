// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loops of a nest before emission: their index space, and what the leading target needs of it.
#ifndef WEFT_COMPILER_KERNELS_NEST_NESTLOOPS_H
#define WEFT_COMPILER_KERNELS_NEST_NESTLOOPS_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"
#include "compiler/Kernels/Emission/StoreTarget.h"
#include "compiler/Kernels/Nest/NestSchedule.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/Error.h"

namespace weft {

struct NestLoops {
  /// Loops of these `extents` over the elements of `leader`, one of the targets of `kernel`: a
  /// single one over all of them, or the dims other than 1 in order, each as one loop or several.
  /// Nothing if the extents are none of that.
  static std::optional<NestLoops> of(mlir::func::FuncOp kernel, const StoreTarget &leader,
                                     llvm::ArrayRef<int64_t> extents);

  /// Loops whose steps do not depend on each other; with reductions, those that these depend on.
  llvm::SmallBitVector parallel() const;
  /// The row-major position at which the leader's element is stored.
  mlir::AffineExpr stored() const;
  /// The index of `tensor`, another target, if the nest computes each of its elements exactly once
  /// on the way to the leader.
  std::optional<Index> indexOf(mlir::Value tensor, const NestSchedule &schedule) const;
  /// Reads that are not contiguous along the loop `lane`.
  llvm::SmallVector<Access> stridedReads(unsigned lane) const;
  /// Whether the vectors of `access` along the loop `load` can be transposed.
  bool isContiguousRead(const Access &access, unsigned load) const;
  /// The loop along which all scans run, with nothing else after the reductions; nothing if scans
  /// cannot run in lanes.
  std::optional<unsigned> scannedLoop(llvm::ArrayRef<int64_t> rows) const;
  /// Whether the schedule can be emitted: the error names the field, and what it has to be.
  llvm::Error verify(const NestSchedule &schedule) const;

  const StoreTarget *leader;
  mlir::RankedTensorType root;
  IndexSpace space;
  unsigned count = 0; ///< the first loops of the space; those of reductions and scans follow
  Index index;        ///< of the leader
  AccessAnalysis demand;

private:
  NestLoops(mlir::func::FuncOp kernel, const StoreTarget &leader);
  llvm::Error verifyRoles(const NestSchedule &schedule) const;
  llvm::Error verifyLanes(const NestSchedule &schedule) const;
  llvm::Error verifyReductions(const NestSchedule &schedule) const;
};

/// Whether `index` varies with one of `loops`.
bool variesAlong(llvm::ArrayRef<mlir::AffineExpr> index, llvm::ArrayRef<int64_t> loops);

} // namespace weft

#endif
