// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Results that may take the memory of an argument which nobody reads afterwards: what is stored
// is in the caches then, and memory is used again.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_BUFFERREUSE_H
#define WEFT_COMPILER_KERNELS_EMISSION_BUFFERREUSE_H

#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

/// Notes on each result of `kernel`, as `weft.in_place`, the arguments whose memory it may take: an
/// element of such a one is read for the result's element at the same place alone. For emitters
/// that store every element once, and nothing there before they have read what it stands on.
/// `reducesRowsFirst`: the emitter reduces all of a row of the result before it stores any of it,
/// so that an element may be read for the others of its row as well.
void markInPlace(KernelFunction &kernel, bool reducesRowsFirst = false);

} // namespace weft

#endif
