// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Places for buffers where each thread finds what it had there before. Threads divide most
// buffers in halves, as they divide their outermost dims. A line that one of them overwrites
// while it lies in the other's caches has to be fetched from there first, which takes several
// times as long as one of its own. Knows nothing of IR.
#ifndef WEFT_COMPILER_LOWERING_ENTRIES_THREADLOCALPLACEMENT_H
#define WEFT_COMPILER_LOWERING_ENTRIES_THREADLOCALPLACEMENT_H

#include "compiler/Lowering/Entries/MemoryPlan.h"

namespace weft {

/// Moves buffers, in an arena of the same size, so that as little as possible of a buffer's first
/// half lies where the second half of another was shortly before, or the other way round.
void placeThreadLocally(llvm::ArrayRef<Lifetime> buffers, MemoryPlan &plan);

} // namespace weft

#endif
