// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scratch memory in rows of whole vectors.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_ROWSCRATCH_H
#define WEFT_COMPILER_KERNELS_EMISSION_ROWSCRATCH_H

#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Kernels/Emission/RegisterTile.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

class RowScratch : private IndexArithmetic {
public:
  RowScratch(KernelFunction &kernel, mlir::Location loc, mlir::VectorType type, int64_t groups,
             int64_t rows);

  mlir::Value load(mlir::Value row, int64_t group);
  void store(mlir::Value vector, mlir::Value row, int64_t group);

  /// The element in row `row` and lane `lane`, as an operand of register tiles.
  TileOperand at(mlir::AffineExpr row, mlir::AffineExpr lane) const;

private:
  int64_t lanes() const { return groups * type.getDimSize(0); }
  mlir::Value addressOf(mlir::Value row, int64_t group);

  mlir::VectorType type;
  int64_t groups;
  mlir::Value buffer;
};

} // namespace weft

#endif
