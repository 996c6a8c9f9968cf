// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops made of data that nobody has checked yet.
#ifndef WEFT_COMPILER_DRIVER_OPCREATION_H
#define WEFT_COMPILER_DRIVER_OPCREATION_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// Whether the registered op of `state` has the attributes and as many operands as its definition
/// says. Inference and Operation::create trust what they are given, so that a hole in the data has
/// to be found here. Every attribute of the dialect's ops is required, but what passes add.
llvm::LogicalResult checkParts(const mlir::OperationState &state, ErrorFn error);

/// Fills in the result types of `state`, unless `typed` says that they are there. Checks the
/// attributes' kinds either way; without inference there is no error but for an op that needs it.
llvm::LogicalResult inferTypes(mlir::OperationState &state, bool typed, ErrorFn error);

} // namespace weft

#endif
