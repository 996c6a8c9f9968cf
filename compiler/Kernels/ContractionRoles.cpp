// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/ContractionRoles.h"

using namespace mlir;
using namespace weft;

FailureOr<ContractionRoles> ContractionRoles::choose(const ContractionShape &shape,
                                                     const IndexSpace &space) {
  std::optional<ContractionShape::Sides> sides = shape.sides(space);
  if (!sides || space.coefficientOf(sides->inner.position, sides->innermost) != 1)
    return failure();
  ContractionRoles roles;
  roles.vectors = sides->inner;
  roles.scalars = sides->outer;
  roles.lane = sides->innermost;
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
