// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the choices for nests and for transposes share.
#ifndef WEFT_COMPILER_SCHEDULING_NESTCHOICE_H
#define WEFT_COMPILER_SCHEDULING_NESTCHOICE_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"

namespace weft {

/// The reduced dim along which most reads are contiguous, of those that fill lanes; or -1.
int64_t chooseReducedLanes(const ReductionDemand &reduction, const IndexSpace &space);

/// The targets of `kernel`, linalg on tensors, of which the interior alone is stored by a nest.
llvm::SmallVector<int64_t> chooseInteriors(mlir::func::FuncOp kernel);

} // namespace weft

#endif
