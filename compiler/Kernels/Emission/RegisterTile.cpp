// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/RegisterTile.h"
#include "compiler/Kernels/Emission/WideningLoad.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

/// Loads the scalars of one vector of lanes and replicates each to the lanes that share it.
static Value loadSpread(ElementEmitter &point, const TileOperand &scalars, VectorType type,
                        Value address, int64_t group) {
  OpBuilder &builder = point.builder;
  const Lanes &lanes = point.getLanes();
  int64_t valid = std::min(lanes.valid - group * lanes.width, lanes.width);
  SmallVector<int64_t> places;
  for (int64_t lane = 0; lane < lanes.width; ++lane)
    places.push_back(lane / scalars.lanesPerScalar * scalars.scalarGap);
  // Masked after the last scalar: memory past it may lie outside the operand.
  Value mask = maskOfFirst(builder, point.loc, places[valid - 1] + 1, lanes.width);
  Value loaded = loadVector(builder, point.loc, type, scalars.memory, address, mask);
  if (scalars.lanesPerScalar == 1 && scalars.scalarGap == 1)
    return loaded;
  return vector::ShuffleOp::create(builder, point.loc, loaded, loaded, places);
}

SmallVector<Value> weft::emitTileStep(ElementEmitter &point, const TileOperand &scalars,
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
  Value vectorBase = point.indexValue(vectors.position);
  SmallVector<Value> columns;
  for (int64_t group = 0; group < lanes.groups; ++group)
    columns.push_back(loadVector(builder, loc, type, vectors.memory,
                                 add(vectorBase, group * lanes.width), point.validMask(group)));
  Value scalarBase = point.indexValue(scalars.position);
  SmallVector<Value> sums(accumulators);
  for (int64_t i = 0; i < rows; ++i) {
    Value address = add(scalarBase, i * rowStride);
    Value shared;
    if (scalars.lanesPerScalar == 0)
      shared = loadBroadcast(builder, loc, type, scalars.memory, address);
    for (int64_t group = 0; group < lanes.groups; ++group) {
      Value factor = shared;
      if (!shared) {
        int64_t perVector = lanes.width / scalars.lanesPerScalar * scalars.scalarGap;
        factor = loadSpread(point, scalars, type, add(address, group * perVector), group);
      }
      Value &sum = sums[i * lanes.groups + group];
      sum = vector::FMAOp::create(builder, loc, factor, columns[group], sum);
    }
  }
  return sums;
}
