// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Places for buffers where each thread finds what it had there before. Threads divide most
// buffers in equal parts, as they divide their outermost dims. A cache line that one of them
// overwrites while it lies in another's caches has to be fetched from there first, which takes
// several times as long as one of its own. Knows nothing of IR.
#ifndef WEFT_COMPILER_LOWERING_ENTRIES_THREADLOCALPLACEMENT_H
#define WEFT_COMPILER_LOWERING_ENTRIES_THREADLOCALPLACEMENT_H

#include "compiler/Lowering/Entries/MemoryPlan.h"

namespace weft {

/// Moves buffers, in an arena of the same size, so that as little as possible of what one of
/// `threads` has of a buffer lies where another one's part of a buffer was shortly before.
void placeThreadLocally(llvm::ArrayRef<Lifetime> buffers, MemoryPlan &plan, int64_t threads);

} // namespace weft

#endif
