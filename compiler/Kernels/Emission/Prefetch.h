// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Software prefetch.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_PREFETCH_H
#define WEFT_COMPILER_KERNELS_EMISSION_PREFETCH_H

#include "mlir/IR/Builders.h"

namespace weft {

/// The target cache level.
enum class CacheLevel { First, Second };

/// Prefetch for reading, or with exclusive ownership for writing.
enum class PrefetchIntent { Read, Write };

constexpr int64_t lineBytes = 64;

/// Prefetches the line of `memory` that holds element `index`.
void emitPrefetch(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memory,
                  mlir::Value index, CacheLevel level,
                  PrefetchIntent intent = PrefetchIntent::Read);

/// Prefetches the lines of `count` elements of `memory` from element `first` on.
void emitRunPrefetch(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memory,
                     mlir::Value first, int64_t count, CacheLevel level,
                     PrefetchIntent intent = PrefetchIntent::Read);

/// Rows with a stride of `stride` elements, from element `address` of `memory` on.
struct FetchedRows {
  mlir::Value memory, address;
  int64_t rows, stride;
};

/// Prefetches one cache line of each row in the share of tile number `tile`. The rows are shared
/// among `tiles` tiles, as memory is too slow to fetch all of them during one.
void emitSharedPrefetch(mlir::OpBuilder &builder, mlir::Location loc, const FetchedRows &fetched,
                        mlir::Value tile, int64_t tiles, CacheLevel level = CacheLevel::First);

} // namespace weft

#endif
