// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Order-preserving integer keys.
#ifndef WEFT_COMPILER_KERNELS_ORDERING_SORTKEY_H
#define WEFT_COMPILER_KERNELS_ORDERING_SORTKEY_H

#include "mlir/IR/Builders.h"

namespace weft {

/// An integer as wide as `element`, or a vector of them, whose unsigned order is that of the
/// elements: signed integers, or floats with one zero and one NaN, which is the greatest.
/// Descending: the reverse.
mlir::Value sortKey(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value element,
                    bool descending);

} // namespace weft

#endif
