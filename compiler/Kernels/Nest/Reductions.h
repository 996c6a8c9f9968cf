// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Emits the loops of one reduction inside a loop nest.
#ifndef WEFT_COMPILER_KERNELS_NEST_REDUCTIONS_H
#define WEFT_COMPILER_KERNELS_NEST_REDUCTIONS_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"
#include "compiler/Kernels/Nest/CachedRow.h"

namespace weft {

/// Most lane groups that one point may hold in registers.
constexpr int64_t maxLaneGroups = 4;

/// Loop over `extent` values of `dim` from `base`, which become the emitter's lanes: blocks
/// of maxLaneGroups vectors, then what is left over, masked. `body` gets the carried
/// values, as many per carried result as the block has groups.
llvm::SmallVector<mlir::Value> emitLaneLoop(ElementEmitter &point, unsigned dim, mlir::Value base,
                                            int64_t extent, int64_t width,
                                            llvm::ArrayRef<mlir::Value> carried, LoopBody body);

/// The values of all results of `reduction` at its index. With lanes set on the emitter
/// every lane reduces for itself; otherwise the lanes go along one of the reduced dims. Fills
/// `kept`, unless null, on the way.
llvm::SmallVector<Emitted> emitReduction(ElementEmitter &point, const ReductionDemand &reduction,
                                         int64_t width, const CachedRow *kept = nullptr);

/// What reductions have come to, by their results and where these are wanted.
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
