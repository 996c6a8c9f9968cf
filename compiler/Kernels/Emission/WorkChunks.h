// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a thread's share of a kernel is cut into parts, which are claimed one after the other: each
// is shorter than the one before it, by the same length, so that few are enough and threads still
// come to their end together.
// Source: Tzen and Ni, "Trapezoid self-scheduling: a practical scheduling scheme for parallel
// compilers", IEEE Transactions on Parallel and Distributed Systems 4(1), 1993.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_WORKCHUNKS_H
#define WEFT_COMPILER_KERNELS_EMISSION_WORKCHUNKS_H

#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

class WorkChunks : private IndexArithmetic {
public:
  /// Of the pieces [first, end), in units of `unit`. Alone, of one thread, it is one part.
  WorkChunks(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value first, mlir::Value end,
             int64_t unit, mlir::Value threads);

  /// How many there are; none of a share without pieces.
  mlir::Value count() const { return parts; }

  /// The piece that part `number` begins with, or the one before it ends at.
  mlir::Value begin(mlir::Value number);

private:
  mlir::Value chooseCount(mlir::Value threads);

  int64_t unit; ///< pieces
  mlir::Value first, size, units, parts;
};

} // namespace weft

#endif
