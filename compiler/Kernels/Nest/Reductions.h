// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loops of a reduction inside a loop nest.
#ifndef WEFT_COMPILER_KERNELS_NEST_REDUCTIONS_H
#define WEFT_COMPILER_KERNELS_NEST_REDUCTIONS_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"
#include "compiler/Kernels/Nest/CachedRow.h"

namespace weft {

/// How many vectors of how many lanes a point has at the most.
struct VectorBlock {
  int64_t width, groups;
  int64_t elements() const { return width * groups; }
};

/// Vectorized loop over `extent` values of `dim` from `base`: blocks of `vectors`, then a masked
/// remainder. `body` gets the carried values, one per group of the block for each carried result.
llvm::SmallVector<mlir::Value> emitLaneLoop(ElementEmitter &point, unsigned dim, mlir::Value base,
                                            int64_t extent, VectorBlock vectors,
                                            llvm::ArrayRef<mlir::Value> carried, LoopBody body);

/// How the loops of a reduction run.
struct ReductionSchedule {
  VectorBlock vectors;
  int64_t lanes = -1; ///< without lanes on the emitter: the reduced dim that has them, or -1
  int64_t unroll = 0; ///< most steps that are unrolled
};

/// All results of `reduction` at its index. With lanes set on the emitter, each lane computes its
/// own. Also fills `kept`, unless null.
llvm::SmallVector<Emitted> emitReduction(ElementEmitter &point, const ReductionDemand &reduction,
                                         const ReductionSchedule &schedule,
                                         const CachedRow *kept = nullptr);

/// Whether vectors can run along a reduced dim: a single combining op, with an identity.
bool canReduceLanes(const ReductionDemand &reduction);

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
