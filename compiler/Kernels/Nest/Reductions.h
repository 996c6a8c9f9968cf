// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loops of a reduction inside a loop nest.
#ifndef WEFT_COMPILER_KERNELS_NEST_REDUCTIONS_H
#define WEFT_COMPILER_KERNELS_NEST_REDUCTIONS_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"
#include "compiler/Kernels/Nest/CachedRow.h"

namespace weft {

/// Most lane groups that one point may hold in registers.
constexpr int64_t maxLaneGroups = 4;

/// Vectorized loop over `extent` values of `dim` from `base`: blocks of maxLaneGroups vectors, then
/// a masked remainder. `body` gets the carried values, one per group of the block for each carried
/// result.
llvm::SmallVector<mlir::Value> emitLaneLoop(ElementEmitter &point, unsigned dim, mlir::Value base,
                                            int64_t extent, int64_t width,
                                            llvm::ArrayRef<mlir::Value> carried, LoopBody body);

/// All results of `reduction` at its index. With lanes set on the emitter, each lane computes its
/// own; otherwise vectors run along one of the reduced dims. Also fills `kept`, unless null.
llvm::SmallVector<Emitted> emitReduction(ElementEmitter &point, const ReductionDemand &reduction,
                                         int64_t width, const CachedRow *kept = nullptr);

/// Results of reductions, by tensor and index.
class ReducedValues {
public:
  void add(const ReductionDemand &reduction, llvm::ArrayRef<Emitted> values);
  std::optional<Emitted> find(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> index) const;
  void clear() { found.clear(); }

private:
  struct Reduced {
    mlir::Value tensor;
    Index index;
    Emitted value;
  };
  llvm::SmallVector<Reduced, 0> found;
};

} // namespace weft

#endif
