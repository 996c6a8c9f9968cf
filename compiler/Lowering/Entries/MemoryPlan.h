// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where buffers with known lifetimes lie in one arena. Knows nothing of IR.
#ifndef WEFT_COMPILER_LOWERING_ENTRIES_MEMORYPLAN_H
#define WEFT_COMPILER_LOWERING_ENTRIES_MEMORYPLAN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <cstdint>

namespace weft {

/// Offsets are multiples of this, which is a cache line and the widest vector.
constexpr int64_t arenaAlignment = 64;

/// A buffer that holds something from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes;
  int64_t first;
  int64_t last;

  int64_t alignedBytes() const { return llvm::alignTo(bytes, arenaAlignment); }
};

struct MemoryPlan {
  llvm::SmallVector<int64_t> offsets; ///< one for each buffer
  int64_t bytes = 0;                  ///< of the arena
};

/// Place the buffers so that no two that are alive at once overlap.
MemoryPlan planMemory(llvm::ArrayRef<Lifetime> buffers);

/// The most bytes that are alive at once: no plan takes less.
int64_t livenessBound(llvm::ArrayRef<Lifetime> buffers);

} // namespace weft

#endif
