// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Asking memory for lines that are read soon.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_PREFETCH_H
#define WEFT_COMPILER_KERNELS_EMISSION_PREFETCH_H

#include "mlir/IR/Builders.h"

namespace weft {

/// The cache that a line is to reach.
enum class CacheLevel { First, Second };

/// What for: a line that is written has to be the processor's own.
enum class Access { Read, Write };

constexpr int64_t lineBytes = 64;

/// Prefetches the line of `memory` that holds element `index`.
void emitPrefetch(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memory,
                  mlir::Value index, CacheLevel level, Access access = Access::Read);

/// Prefetches the lines of `count` elements of `memory` from element `first` on.
void emitRunPrefetch(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memory,
                     mlir::Value first, int64_t count, CacheLevel level,
                     Access access = Access::Read);

/// Rows whose lines lie `stride` elements apart, from element `address` of `memory` on.
struct FetchedRows {
  mlir::Value memory, address;
  int64_t rows, stride;
};

/// Prefetches a line of each of tile number `tile`'s share of the rows. The `tiles` that go by
/// them take turns, as memory is slower than the first of them alone.
void emitSharedPrefetch(mlir::OpBuilder &builder, mlir::Location loc, const FetchedRows &fetched,
                        mlir::Value tile, int64_t tiles, CacheLevel level = CacheLevel::First);

} // namespace weft

#endif
