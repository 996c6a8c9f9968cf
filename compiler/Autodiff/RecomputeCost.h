// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What it costs to keep a value for the backward, and to compute it again there.
#ifndef WEFT_COMPILER_AUTODIFF_RECOMPUTECOST_H
#define WEFT_COMPILER_AUTODIFF_RECOMPUTECOST_H

#include "mlir/IR/Operation.h"

namespace weft {

/// Bytes of memory that `value` takes.
int64_t bytesOf(mlir::Value value);

/// Whether it is written to memory whatever becomes of it.
bool isStored(mlir::Value value);

/// Bytes that saving `value` moves: it is written beside its kernel's own result where it would
/// not have been stored otherwise.
int64_t costOfSaving(mlir::Value value);

/// Bytes that could be moved in the time that `op` takes when it is computed again; nothing for
/// what is a view. Negative where it cannot be computed again.
int64_t costOfRecomputing(mlir::Operation *op);

} // namespace weft

#endif
