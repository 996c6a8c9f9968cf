// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/ContractionRoles.h"

using namespace mlir;
using namespace weft;

/// The batch dim along which both operands and the result are contiguous: the channels of
/// a depthwise convolution.
static std::optional<unsigned> batchLane(const ContractionShape &shape, const IndexSpace &space) {
  for (unsigned dim : shape.batch)
    if (llvm::all_of(ArrayRef{shape.lhs.position, shape.rhs.position, shape.resultPosition},
                     [&](AffineExpr position) { return space.coefficientOf(position, dim) == 1; }))
      return dim;
  return std::nullopt;
}

FailureOr<ContractionRoles> ContractionRoles::choose(const ContractionShape &shape,
                                                     const IndexSpace &space) {
  ContractionRoles roles;
  roles.batch = shape.batch;
  if (std::optional<ContractionShape::Sides> sides = shape.sides(space)) {
    if (space.coefficientOf(sides->inner.position, sides->innermost) != 1)
      return failure();
    roles.vectors = sides->inner;
    roles.scalars = sides->outer;
    roles.lane = sides->innermost;
  } else {
    std::optional<unsigned> lane = batchLane(shape, space);
    if (!lane || (shape.lhs.free.empty() && shape.rhs.free.empty()))
      return failure();
    roles.lane = *lane;
    roles.lanewise = true;
    llvm::erase(roles.batch, *lane);
    roles.vectors = shape.lhs.free.empty() ? shape.lhs : shape.rhs;
    roles.scalars = shape.lhs.free.empty() ? shape.rhs : shape.lhs;
  }
  // Tile rows along the innermost free dim that is long enough, else the longest.
  for (unsigned dim : roles.scalars.free)
    if (!roles.row || space.extent(dim) >= std::min<int64_t>(space.extent(*roles.row), 6))
      roles.row = dim;
  for (unsigned dim : roles.scalars.free)
    if (dim != roles.row)
      roles.outerRows.push_back(dim);
  for (unsigned dim : roles.vectors.free)
    if (dim != roles.lane)
      roles.outerPanels.push_back(dim);
  return roles;
}
