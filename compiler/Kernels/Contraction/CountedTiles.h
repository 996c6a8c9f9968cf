// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What counts of the tile at the point, in a kernel that is compiled for a range of sizes and
// called with fewer than it has room for.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_COUNTEDTILES_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_COUNTEDTILES_H

#include "compiler/Kernels/Contraction/ContractionMatch.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

class CountedTiles : private IndexArithmetic {
public:
  CountedTiles(KernelFunction &kernel, ElementEmitter &point, const ContractionMatch &match,
               const ContractionSchedule &schedule);

  /// Whether any row of the tile counts; null where all do, or the tiles of all rows pack operands
  /// for those that follow.
  mlir::Value rows();
  /// Where the lanes are rows of a result, in blocks: how many of the tile and after it count, at
  /// least one; null elsewhere.
  mlir::Value lanes();
  /// Whether what does not count is left as it is, rather than set to zero.
  bool leavesRest() const { return kernel.bound()[0]; }

private:
  bool growsInTile(mlir::AffineExpr row) const;
  llvm::ArrayRef<int64_t> shapeOf(const EpilogueRoot &root) const;

  KernelFunction &kernel;
  ElementEmitter &point;
  const ContractionMatch &match;
  const ContractionSchedule &schedule;
};

} // namespace weft

#endif
