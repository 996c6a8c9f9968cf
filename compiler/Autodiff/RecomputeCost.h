// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What it costs to save a value for the backward, and what it costs to compute it there again.
#ifndef WEFT_COMPILER_AUTODIFF_RECOMPUTECOST_H
#define WEFT_COMPILER_AUTODIFF_RECOMPUTECOST_H

#include "mlir/IR/Operation.h"

namespace weft {

/// The bytes of memory that `value` takes.
int64_t bytesOf(mlir::Value value);

/// Whether `value` is written to memory in any case, whether or not it is saved for the backward.
bool isStored(mlir::Value value);

/// The bytes that are moved if `value` is saved. A value that would not have been stored otherwise
/// is written in addition to its kernel's own result.
int64_t costOfSaving(mlir::Value value);

/// The bytes that could be moved in the time that it takes to compute `op` again; 0 for a view.
/// Negative if the op cannot be computed again.
int64_t costOfRecomputing(mlir::Operation *op);

} // namespace weft

#endif
