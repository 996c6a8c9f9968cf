// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/DotOperands.h"

using namespace mlir;
using namespace weft;

FailureOr<DotOperands> DotOperands::match(linalg::GenericOp generic, IndexSpace &space) {
  FailureOr<ContractionShape> matched = ContractionShape::match(generic, space);
  if (failed(matched))
    return failure();
  DotOperands found;
  found.shape = *matched;
  auto &reduced = found.shape.reduced;
  auto *contiguous = llvm::find_if(reduced, [&](unsigned dim) {
    return space.coefficientOf(matched->lhs.position, dim) == 1 &&
           space.coefficientOf(matched->rhs.position, dim) == 1;
  });
  if (contiguous == reduced.end())
    return failure();
  found.depth = *contiguous;
  std::rotate(contiguous, contiguous + 1, reduced.end());
  std::optional<ContractionShape::Sides> sides = found.shape.sides(space);
  if (!sides)
    return failure();
  found.column = sides->innermost;
  found.columns = sides->inner;
  found.rows = sides->outer;
  for (unsigned dim : found.rows.free)
    if (!found.row || space.extent(dim) > space.extent(*found.row))
      found.row = dim;
  found.outer = found.shape.batch;
  for (unsigned dim : found.columns.free)
    if (dim != found.column)
      found.outer.push_back(dim);
  for (unsigned dim : found.rows.free)
    if (dim != found.row)
      found.outer.push_back(dim);
  return found;
}
