// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/RegisterTile.h"
#include "compiler/Kernels/WideLoad.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

SmallVector<Value> weft::emitTileStep(PointEmitter &point, const TileOperand &scalars,
                                      int64_t rowStride, const TileOperand &vectors, int64_t rows,
                                      ArrayRef<Value> accumulators) {
  OpBuilder &builder = point.builder;
  Location loc = point.loc;
  const Lanes &lanes = point.getLanes();
  auto add = [&](Value base, int64_t offset) -> Value {
    if (offset == 0)
      return base;
    Value step = arith::ConstantIndexOp::create(builder, loc, offset);
    return arith::AddIOp::create(builder, loc, base, step);
  };
  auto type = cast<VectorType>(accumulators.front().getType());
  auto loadLanes = [&](Value memory, Value base, int64_t group) {
    return loadVector(builder, loc, type, memory, add(base, group * lanes.width),
                      point.validMask(group));
  };
  Value vectorBase = point.indexValue(vectors.position);
  SmallVector<Value> columns;
  for (int64_t group = 0; group < lanes.groups; ++group)
    columns.push_back(loadLanes(vectors.memory, vectorBase, group));
  bool lanewise = point.space.coefficientOf(scalars.position, lanes.dim) != 0;
  Value scalarBase = point.indexValue(scalars.position);
  SmallVector<Value> sums(accumulators);
  for (int64_t i = 0; i < rows; ++i) {
    Value address = add(scalarBase, i * rowStride);
    Value shared;
    if (!lanewise)
      shared = loadBroadcast(builder, loc, type, scalars.memory, address);
    for (int64_t group = 0; group < lanes.groups; ++group) {
      Value factor = lanewise ? loadLanes(scalars.memory, address, group) : shared;
      Value &sum = sums[i * lanes.groups + group];
      sum = vector::FMAOp::create(builder, loc, factor, columns[group], sum);
    }
  }
  return sums;
}
