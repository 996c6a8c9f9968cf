// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sorts of bools: those that come first, then the others, each in the order of their positions.
#ifndef WEFT_COMPILER_KERNELS_ORDERING_PARTITION_H
#define WEFT_COMPILER_KERNELS_ORDERING_PARTITION_H

#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Kernels/Ordering/SortSchedule.h"

namespace weft {

/// Whether `op` sorts whole rows of bools that are contiguous in its results.
bool isPartition(SortOp op);

/// Such a sort: each row by one thread, in vectors of positions.
void emitPartition(KernelFunction &kernel, SortOp op, const SortSchedule &schedule);

} // namespace weft

#endif
