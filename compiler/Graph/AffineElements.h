// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Integer tensors whose elements are an affine function of their index, as index grids,
// positions and the differences of them are.
#ifndef WEFT_COMPILER_GRAPH_AFFINEELEMENTS_H
#define WEFT_COMPILER_GRAPH_AFFINEELEMENTS_H

#include "compiler/Graph/Graph.h"
#include <optional>

namespace weft {

/// Element [i0, i1, ...] is base + the sum of steps[d] * i_d. Along dims of size 1 the step is 0.
struct AffineElements {
  int64_t base = 0;
  llvm::SmallVector<int64_t> steps;

  /// Smallest and largest element of a tensor of this shape; nothing when they overflow.
  std::optional<std::pair<int64_t, int64_t>> rangeIn(llvm::ArrayRef<int64_t> shape) const;
  /// What is at most 0 where this is not; nothing when it overflows.
  std::optional<AffineElements> complement() const;
};

/// The elements of `value`, an integer tensor, if they are known to be affine.
std::optional<AffineElements> affineElements(mlir::Value value);

/// The elements of lhs - rhs, both of one type.
std::optional<AffineElements> affineDifference(mlir::Value lhs, mlir::Value rhs);

/// Of a boolean tensor that is a comparison, or one that was moved: true where this is at most 0.
std::optional<AffineElements> affineComparison(mlir::Value condition);

} // namespace weft

#endif
