// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Offsets in one arena for buffers with known lifetimes. Independent of IR.
#ifndef WEFT_COMPILER_LOWERING_ENTRIES_MEMORYPLAN_H
#define WEFT_COMPILER_LOWERING_ENTRIES_MEMORYPLAN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <cstdint>

namespace weft {

/// Alignment of offsets: a cache line, and the widest vector.
constexpr int64_t arenaAlignment = 64;

/// A buffer that is live from step `first` to step `last`, inclusive.
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

/// Places the buffers so that no two with overlapping lifetimes overlap.
MemoryPlan planMemory(llvm::ArrayRef<Lifetime> buffers);

/// The most bytes that are live at once: a lower bound of all plans.
int64_t livenessBound(llvm::ArrayRef<Lifetime> buffers);

} // namespace weft

#endif
