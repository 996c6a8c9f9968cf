// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dim of a view along which elements are contiguous in memory.
#ifndef WEFT_COMPILER_TRANSFORMS_INNERMOSTDIM_H
#define WEFT_COMPILER_TRANSFORMS_INNERMOSTDIM_H

#include "compiler/Graph/OpStructure.h"

namespace weft {

/// The last dim of more than one element in memory of `type`.
std::optional<int64_t> innermostInMemory(mlir::RankedTensorType type);

/// The innermost dim of the memory that `value` is a view of; nothing if views skip elements, or if
/// there is only one element.
std::optional<InnermostDim> innermostOf(mlir::Value value);

} // namespace weft

#endif
