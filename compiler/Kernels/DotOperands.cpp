// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/DotOperands.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

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

bool DotOperands::fetchesColumns(const IndexSpace &space, const TargetInfo &target) const {
  Type element = getElementTypeOrSelf(columns.memory.getType());
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  return space.extent(column) * space.extent(depth) * bytes > target.l2Bytes / 2;
}

void DotOperands::emitFetch(PointEmitter &point, int64_t count, Value tile, int64_t tiles,
                            CacheLevel level) const {
  OpBuilder &builder = point.builder;
  Location loc = point.loc;
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value current = point.indexValue(getAffineDimExpr(column, builder.getContext()));
  Value next = arith::AddIOp::create(builder, loc, current, constant(count));
  Value last = constant(point.space.extent(column) - count);
  point.setDim(column, arith::MinUIOp::create(builder, loc, next, last));
  FetchedRows fetched{point.getBuffer(columns.memory)->flat, point.indexValue(columns.position),
                      count, columnStride(point.space)};
  emitSharedPrefetch(builder, loc, fetched, tile, tiles, level);
  point.setDim(column, current);
}
