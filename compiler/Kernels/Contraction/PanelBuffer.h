// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A thread's scratch for the packed B panels of a block, for one chunk of the sum.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_PANELBUFFER_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_PANELBUFFER_H

#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

/// Layout: [panel of the block][outer reduced dims][step of the chunk][lane].
class PanelBuffer : private IndexArithmetic {
public:
  /// `reduced`: the dims of a chunk, outermost first; `steps`: steps of a chunk.
  PanelBuffer(KernelFunction &kernel, ElementEmitter &point, mlir::Location loc,
              llvm::ArrayRef<unsigned> reduced, int64_t panels, int64_t lanes, mlir::Type element,
              int64_t steps);

  /// Makes panel `number` of the block current, for a chunk that starts at `chunkStart`.
  void enter(mlir::Value number, mlir::Value chunkStart);

  int64_t panelSize() const { return size; }

  mlir::Value memory;
  mlir::AffineExpr position; ///< of the point's step in the current panel

private:
  ElementEmitter &point;
  int64_t lanes;  ///< lanes of a panel
  int64_t size;   ///< elements of a panel
  unsigned start; ///< dim of the space: offset of step 0 in the current panel
};

} // namespace weft

#endif
