// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/DotProduct/DotOperands.h"
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

static Value constantOf(ElementEmitter &point, int64_t value) {
  return arith::ConstantIndexOp::create(point.builder, point.loc, value);
}

Value DotOperands::nextColumn(ElementEmitter &point, int64_t count) const {
  Value next = arith::AddIOp::create(point.builder, point.loc, point.dimValue(column),
                                     constantOf(point, count));
  Value last = constantOf(point, point.space.extent(column) - count);
  return arith::MinUIOp::create(point.builder, point.loc, next, last);
}

void DotOperands::emitFetch(ElementEmitter &point, int64_t count, Value tile, int64_t tiles,
                            CacheLevel level) const {
  Value current = point.dimValue(column);
  point.setDim(column, nextColumn(point, count));
  FetchedRows fetched{point.getBuffer(columns.memory)->flat, point.indexValue(columns.position),
                      count, columnStride(point.space)};
  emitSharedPrefetch(point.builder, point.loc, fetched, tile, tiles, level);
  point.setDim(column, current);
}

void DotOperands::emitFetchAhead(ElementEmitter &point, int64_t count, int64_t steps) const {
  OpBuilder &builder = point.builder;
  Location loc = point.loc;
  Value currentColumn = point.dimValue(column), currentStep = point.dimValue(depth);
  Value extent = constantOf(point, point.space.extent(depth));
  Value ahead = arith::AddIOp::create(builder, loc, currentStep, constantOf(point, steps));
  Value isBehind = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, ahead, extent);
  Value inNext = arith::SubIOp::create(builder, loc, ahead, extent);
  point.setDim(depth, arith::SelectOp::create(builder, loc, isBehind, inNext, ahead));
  point.setDim(column, arith::SelectOp::create(builder, loc, isBehind, nextColumn(point, count),
                                               currentColumn));
  FetchedRows fetched{point.getBuffer(columns.memory)->flat, point.indexValue(columns.position),
                      count, columnStride(point.space)};
  emitSharedPrefetch(builder, loc, fetched, constantOf(point, 0), /*tiles=*/1, CacheLevel::Second);
  point.setDim(column, currentColumn);
  point.setDim(depth, currentStep);
}
