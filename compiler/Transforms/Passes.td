// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The passes over the graph dialect, in pipeline order.
#ifndef WEFT_TRANSFORMS_PASSES_TD
#define WEFT_TRANSFORMS_PASSES_TD

include "compiler/Transforms/RewritePasses.td"
include "compiler/Transforms/LayoutPasses.td"
include "compiler/Transforms/KernelPasses.td"

#endif
