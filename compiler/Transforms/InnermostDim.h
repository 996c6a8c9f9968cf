// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Along which dim of a view neighbours in memory lie.
#ifndef WEFT_COMPILER_TRANSFORMS_INNERMOSTDIM_H
#define WEFT_COMPILER_TRANSFORMS_INNERMOSTDIM_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// Neighbours in memory are `step` apart along `dim`.
struct InnermostDim {
  int64_t dim;
  int64_t step = 1;

  bool operator==(const InnermostDim &) const = default;
};

/// The last dim of more than one element in memory of `type`.
std::optional<int64_t> innermostInMemory(mlir::RankedTensorType type);

/// Of what lies in memory behind the views that `value` is made by; nothing where these skip
/// elements, or where there is only one.
std::optional<InnermostDim> innermostOf(mlir::Value value);

} // namespace weft

#endif
