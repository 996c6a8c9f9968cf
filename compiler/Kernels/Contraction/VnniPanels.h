// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dot products of bfloat16 pairs. The instruction takes VNNI layout: two steps of k interleaved in
// each lane. The B panels of a block are interleaved once, in this thread's scratch, for all row
// tiles. A's scalars of two steps, 32 contiguous bits, are broadcast from its original layout, or
// from a packed A panel if it is strided along k.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_VNNIPANELS_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_VNNIPANELS_H

#include "compiler/Kernels/Contraction/ContractionRoles.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Contraction/PanelBuffer.h"
#include "compiler/Kernels/Emission/RegisterTile.h"

namespace weft {

/// Layout: [pair of steps][lane][step of the pair].
class VnniPanels : private IndexArithmetic {
public:
  /// Whether both operands are bf16, summed in `element`, f32.
  static bool suits(const ContractionRoles &roles, const ContractionShape &shape,
                    mlir::Type element);

  /// Reserves the scratch. `schedule.paired` is set.
  VnniPanels(KernelFunction &kernel, ElementEmitter &point, mlir::Location loc,
             const ContractionRoles &roles, llvm::ArrayRef<unsigned> reduced,
             const ContractionSchedule &schedule);

  /// Interleaves panel `number` of the block for the steps of a chunk; the point is at the panel,
  /// with its lanes. An odd last step is paired with zeros.
  void emitCopy(mlir::Value number, mlir::Value chunkStart, int64_t chunkSize);

  /// Makes panel `number` of the block current.
  void enter(mlir::Value number, mlir::Value chunkStart) { scratch.enter(number, chunkStart); }

  /// accumulators[i][j] += scalar i * vector j, for the point's step and, unless it `isOddLast`,
  /// the next, whose scalar follows in memory. `rowStride`: elements between scalars i - 1 and i.
  llvm::SmallVector<mlir::Value> emitSteps(const TileOperand &scalars, int64_t rowStride,
                                           int64_t rows, bool isOddLast,
                                           llvm::ArrayRef<mlir::Value> accumulators);

private:
  void copyStep(bool isOddLast);
  mlir::Value broadcastPair(mlir::Value source, mlir::Value address, bool isOddLast);

  ElementEmitter &point;
  const ContractionOperand &vectors;
  llvm::SmallVector<unsigned> reduced; ///< dims of the space, outermost first
  int64_t width;                       ///< lanes of a vector
  mlir::Type half;
  PanelBuffer scratch;
};

} // namespace weft

#endif
