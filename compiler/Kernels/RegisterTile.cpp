// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/RegisterTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
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
  Value vectorBase = point.indexValue(vectors.position);
  SmallVector<Value> columns;
  for (int64_t group = 0; group < lanes.groups; ++group) {
    Value address = add(vectorBase, group * lanes.width);
    if (Value mask = point.validMask(group)) {
      Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
      columns.push_back(
          vector::MaskedLoadOp::create(builder, loc, type, vectors.memory, address, mask, zero));
    } else {
      columns.push_back(vector::LoadOp::create(builder, loc, type, vectors.memory, address));
    }
  }
  Value scalarBase = point.indexValue(scalars.position);
  SmallVector<Value> sums(accumulators);
  for (int64_t i = 0; i < rows; ++i) {
    Value scalar =
        memref::LoadOp::create(builder, loc, scalars.memory, add(scalarBase, i * rowStride));
    Value broadcast = vector::BroadcastOp::create(builder, loc, type, scalar);
    for (int64_t group = 0; group < lanes.groups; ++group) {
      Value &sum = sums[i * lanes.groups + group];
      sum = vector::FMAOp::create(builder, loc, broadcast, columns[group], sum);
    }
  }
  return sums;
}
