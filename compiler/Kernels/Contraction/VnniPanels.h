// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums of products of bfloat16, two steps at a time. The instruction wants the elements of two
// steps side by side in each lane, where memory has a step's lanes side by side: the vectors of
// a block of panels are interleaved once, in this thread's scratch, for all rows that go by.
// The scalars of two steps are neighbours, 32 bits that are broadcast: where they lie, or from a
// strip where they lie apart.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_VNNIPANELS_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_VNNIPANELS_H

#include "compiler/Kernels/Contraction/ContractionRoles.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Contraction/PanelBuffer.h"
#include "compiler/Kernels/Emission/RegisterTile.h"

namespace weft {

/// Scratch whose steps go in pairs: [pair of steps][lane][step of the pair].
class VnniPanels : private IndexArithmetic {
public:
  /// Whether both operands are bf16, summed in `element`, f32, and enough rows go by to be worth
  /// the copy.
  static bool suits(const ContractionRoles &roles, const ContractionShape &shape,
                    const IndexSpace &space, mlir::Type element);

  /// Reserves the scratch. `schedule.paired` is set.
  VnniPanels(KernelFunction &kernel, ElementEmitter &point, mlir::Location loc,
             const ContractionRoles &roles, llvm::ArrayRef<unsigned> reduced,
             const ContractionSchedule &schedule);

  /// The point stands at panel `number` of the block, with the panel's lanes: interleaves its
  /// vectors for the steps of a chunk. An odd last step is paired with zeros.
  void emitCopy(mlir::Value number, mlir::Value chunkStart, int64_t chunkSize);

  /// What follows reads panel `number` of the block.
  void enter(mlir::Value number, mlir::Value chunkStart) { scratch.enter(number, chunkStart); }

  /// accumulators[i][j] += scalar i * vector j, for the point's step and, unless it is the
  /// `isOddLast`, the next, whose scalar lies behind the step's. Scalar i lies `rowStride`
  /// elements after scalar i - 1.
  llvm::SmallVector<mlir::Value> emitSteps(const TileOperand &scalars, int64_t rowStride,
                                           int64_t rows, bool isOddLast,
                                           llvm::ArrayRef<mlir::Value> accumulators);

private:
  void copyStep(bool isOddLast);
  mlir::Value broadcastPair(mlir::Value source, mlir::Value address, bool isOddLast);

  ElementEmitter &point;
  const ContractionOperand &vectors;
  llvm::SmallVector<unsigned> reduced; ///< dims of the space, outermost first
  int64_t width;                       ///< lanes of one vector
  mlir::Type half;
  PanelBuffer scratch;
};

} // namespace weft

#endif
