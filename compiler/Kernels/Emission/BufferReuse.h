// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Results that may reuse the buffer of a dead argument: they are stored to lines that are in cache,
// and the kernel needs less memory.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_BUFFERREUSE_H
#define WEFT_COMPILER_KERNELS_EMISSION_BUFFERREUSE_H

#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

/// Sets `weft.in_place` on each result of `kernel` to the arguments whose buffer it may reuse: each
/// element of such an argument is read only for the result's element at the same position. For
/// emitters that store every element once, after all reads it depends on. `reducesRowsFirst`: the
/// emitter reduces a whole row of the result before it stores any of it, so that reductions may
/// read the whole row.
void markInPlace(KernelFunction &kernel, bool reducesRowsFirst = false);

} // namespace weft

#endif
