// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Divides a thread's partition of a kernel into chunks of linearly decreasing size that are claimed
// in order, so that few chunks are enough for threads to finish together.
// Source: Tzen and Ni, "Trapezoid self-scheduling: a practical scheduling scheme for parallel
// compilers", IEEE Transactions on Parallel and Distributed Systems 4(1), 1993.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_WORKCHUNKS_H
#define WEFT_COMPILER_KERNELS_EMISSION_WORKCHUNKS_H

#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

class WorkChunks : private IndexArithmetic {
public:
  /// Chunks of the pieces [first, end), in multiples of `unit` pieces; one chunk if there is one
  /// thread.
  WorkChunks(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value first, mlir::Value end,
             int64_t unit, mlir::Value threads);

  /// Number of chunks; 0 for an empty partition.
  mlir::Value count() const { return parts; }

  /// The first piece of chunk `number`, which is the end of the chunk before.
  mlir::Value begin(mlir::Value number);

private:
  mlir::Value chooseCount(mlir::Value threads);

  int64_t unit; ///< pieces of a unit
  mlir::Value first, size, units, parts;
};

} // namespace weft

#endif
