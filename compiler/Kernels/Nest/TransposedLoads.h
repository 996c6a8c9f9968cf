// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads of a nest that are contiguous along another dim than its lanes: their vectors are
// transposed in registers, square by square.
#ifndef WEFT_COMPILER_KERNELS_NEST_TRANSPOSEDLOADS_H
#define WEFT_COMPILER_KERNELS_NEST_TRANSPOSEDLOADS_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"
#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

class TransposedLoads {
public:
  TransposedLoads(KernelFunction &kernel, ElementEmitter &point, const IndexSpace &space,
                  unsigned loadDim, unsigned laneDim, int64_t width,
                  llvm::SmallVector<Access> accesses)
      : kernel(kernel), point(point), space(space), loadDim(loadDim), laneDim(laneDim),
        width(width), accesses(std::move(accesses)) {}

  /// Emits `store` at `count` values of the load dim from the point's on, with lanes along `extent`
  /// values of the lane dim from `base` on. The point has no lanes afterwards.
  void emitSquare(mlir::Value base, int64_t extent, int64_t count,
                  llvm::function_ref<void()> store);

  /// The value of `tensor` at `index`, if it is among the current square's reads.
  std::optional<Emitted> find(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> index) const;

private:
  KernelFunction &kernel;
  ElementEmitter &point;
  const IndexSpace &space;
  unsigned loadDim, laneDim;
  int64_t width;
  llvm::SmallVector<Access> accesses;
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> squares; ///< per access: vectors along lanes
  int64_t row = 0;                                           ///< row of a square at the point
};

} // namespace weft

#endif
