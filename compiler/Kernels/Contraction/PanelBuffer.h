// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a thread keeps its copy of the vectors of a block of panels, for a chunk of the sum.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_PANELBUFFER_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_PANELBUFFER_H

#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

/// Scratch of [panel of the block][outer reduced dims][step of the chunk][lane], flat.
class PanelBuffer : private IndexArithmetic {
public:
  /// Reserves it. `reduced`: the dims of a chunk, outermost first. Chunks are of `steps` steps.
  PanelBuffer(KernelFunction &kernel, ElementEmitter &point, mlir::Location loc,
              llvm::ArrayRef<unsigned> reduced, int64_t panels, int64_t lanes, mlir::Type element,
              int64_t steps);

  /// What follows reads or writes panel `number` of the block, whose chunk starts at `chunkStart`.
  void enter(mlir::Value number, mlir::Value chunkStart);

  int64_t panelSize() const { return size; }

  mlir::Value memory;
  mlir::AffineExpr position; ///< of the point's step in the panel that was entered

private:
  ElementEmitter &point;
  int64_t lanes;  ///< of a panel
  int64_t size;   ///< elements of a panel
  unsigned start; ///< dim of the space: where step 0 of the panel would lie
};

} // namespace weft

#endif
