// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/ContractionRoles.h"

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

/// Joins groups narrower than a vector into the lane dim, if one load covers the scalars of a
/// vector.
static void joinNarrowGroups(ContractionRoles &roles, ContractionShape &shape,
                             const ContractionShape::Sides &sides, IndexSpace &space,
                             int64_t width) {
  int64_t size = space.extent(sides.innermost);
  std::optional<unsigned> groups = shape.groupsAround(sides, space);
  if (!groups || size >= width || width % size != 0)
    return;
  int64_t gap = *space.coefficientOf(sides.outer.position, *groups);
  if (gap < 1 || (width / size - 1) * gap >= width)
    return;
  roles.lanesPerScalar = size;
  roles.scalarGap = gap;
  roles.lane = shape.joinGroups(*groups, sides, space);
}

FailureOr<ContractionRoles> ContractionRoles::choose(ContractionShape &shape, IndexSpace &space,
                                                     int64_t width) {
  ContractionRoles roles;
  if (std::optional<ContractionShape::Sides> sides = shape.sides(space)) {
    if (space.coefficientOf(sides->inner.position, sides->innermost) != 1)
      return failure();
    roles.lane = sides->innermost;
    joinNarrowGroups(roles, shape, *sides, space, width);
    roles.vectors = sides->inner;
    roles.scalars = sides->outer;
    roles.batch = shape.batch;
  } else {
    std::optional<unsigned> lane = batchLane(shape, space);
    if (!lane || (shape.lhs.free.empty() && shape.rhs.free.empty()))
      return failure();
    roles.lane = *lane;
    roles.lanesPerScalar = roles.scalarGap = 1;
    roles.batch = shape.batch;
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
