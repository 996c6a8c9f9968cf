// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Attention/QueryPacking.h"
#include "compiler/Kernels/Emission/RegisterTranspose.h"
#include "compiler/Kernels/Emission/SteppedLoop.h"
#include "compiler/Kernels/Emission/StoredIndex.h"

using namespace mlir;
using namespace weft;

static unsigned dimOf(AffineExpr dim) { return cast<AffineDimExpr>(dim).getPosition(); }

QueryPacking::QueryPacking(KernelFunction &kernel, ElementEmitter &point, AttentionOp op)
    : IndexArithmetic(kernel.builder, op.getLoc()), kernel(kernel), point(point),
      queries(op.getQuery()) {}

LogicalResult QueryPacking::match(ArrayRef<AffineExpr> ofQuery, AffineExpr laneDim,
                                  AffineExpr featureDim) {
  index = llvm::to_vector(ofQuery);
  lane = laneDim;
  feature = featureDim;
  stored = storedOperand(point, queries, index);
  return success(stored.has_value());
}

bool QueryPacking::liesAlong(AffineExpr dim) const {
  return point.space.coefficientOf(stored->position, dimOf(dim)) == 1;
}

void QueryPacking::reserve(VectorType type, int64_t groups, bool whole) {
  if (!whole || !liesAlong(lane))
    packed.emplace(kernel, loc, type, groups, point.space.extent(dimOf(feature)));
}

void QueryPacking::pack() {
  if (!packed)
    return;
  auto [source, sourceIndex] = storedAt(queries, index, point.space);
  if (liesAlong(feature))
    packSquares(source, sourceIndex);
  else
    packRows(source, sourceIndex);
}

void QueryPacking::packRows(Value source, ArrayRef<AffineExpr> sourceIndex) {
  int64_t features = point.space.extent(dimOf(feature));
  emitLoop(builder, loc, 0, features, 1, {}, [&](Value row, ValueRange) {
    point.setDim(dimOf(feature), row);
    point.forget();
    SmallVector<Value> vectors = point.asVectors(point.emitAt(source, sourceIndex));
    for (auto [group, vector] : llvm::enumerate(vectors))
      packed->store(vector, row, group);
    return SmallVector<Value>();
  });
}

/// Transposes squares from contiguous features to contiguous queries, in registers.
void QueryPacking::packSquares(Value source, ArrayRef<AffineExpr> sourceIndex) {
  Lanes lanes = point.getLanes();
  auto column = [&] { return point.asVectors(point.emitAt(source, sourceIndex)).front(); };
  auto squares = [&](Value first, int64_t count, ArrayRef<Value>) {
    point.setDim(dimOf(feature), first);
    for (int64_t group = 0; group < lanes.groups; ++group)
      emitSquare(point, dimOf(feature), dimOf(lane), constant(group * lanes.width), lanes.width,
                 count, lanes.width, column, [&](const Emitted &row) {
                   packed->store(row.parts.front(), point.indexValue(feature), group);
                 });
    return SmallVector<Value>();
  };
  int64_t features = point.space.extent(dimOf(feature));
  emitSteps(builder, loc, constant(features), features, lanes.width, {}, squares);
}
