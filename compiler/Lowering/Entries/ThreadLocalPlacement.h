// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Placement of buffers by thread locality. Threads partition most buffers evenly, along their
// outermost dims. Writing a cache line that is in another core's cache takes a transfer first,
// several times as long as writing one of its own. Independent of IR.
#ifndef WEFT_COMPILER_LOWERING_ENTRIES_THREADLOCALPLACEMENT_H
#define WEFT_COMPILER_LOWERING_ENTRIES_THREADLOCALPLACEMENT_H

#include "compiler/Lowering/Entries/MemoryPlan.h"

namespace weft {

/// Moves buffers, within an arena of the same size, so that few bytes of a thread's partition of a
/// buffer were shortly before in another thread's partition of a buffer.
void placeThreadLocally(llvm::ArrayRef<Lifetime> buffers, MemoryPlan &plan, int64_t threads);

} // namespace weft

#endif
