// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/RegisterTranspose.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

SmallVector<Value> weft::transposeVectors(OpBuilder &builder, Location loc, ArrayRef<Value> rows) {
  SmallVector<Value> square(rows);
  int64_t size = rows.size();
  int64_t lanes = cast<VectorType>(rows.front().getType()).getNumElements(), part = lanes / size;
  for (int64_t block = size / 2; block > 0; block /= 2) {
    // Exchange the off-diagonal blocks of rows i and i + block.
    SmallVector<int64_t> upper, lower;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      bool second = lane / part & block;
      upper.push_back(second ? lanes + lane - block * part : lane);
      lower.push_back(second ? lanes + lane : lane + block * part);
    }
    for (int64_t i = 0; i < size; ++i) {
      if (i & block)
        continue;
      Value first = square[i], second = square[i + block];
      square[i] = vector::ShuffleOp::create(builder, loc, first, second, upper);
      square[i + block] = vector::ShuffleOp::create(builder, loc, first, second, lower);
    }
  }
  return square;
}

void weft::emitSquare(ElementEmitter &point, unsigned loadDim, unsigned storeDim, Value base,
                      int64_t columns, int64_t rows, int64_t width,
                      llvm::function_ref<Value()> value,
                      llvm::function_ref<void(const Emitted &)> store) {
  OpBuilder &builder = point.builder;
  Value first = point.dimValue(loadDim);
  auto moveTo = [&](unsigned dim, Value from, int64_t by) {
    Value step = arith::ConstantIndexOp::create(builder, point.loc, by);
    point.setDim(dim, arith::AddIOp::create(builder, point.loc, from, step));
    point.forget();
  };
  point.setLanes({static_cast<int64_t>(loadDim), width, 1, rows});
  SmallVector<Value> square;
  for (int64_t i = 0; i < columns; ++i) {
    moveTo(storeDim, base, i);
    square.push_back(value());
  }
  square.resize(width, square.front());
  square = transposeVectors(builder, point.loc, square);
  point.setDim(storeDim, base);
  point.setLanes({static_cast<int64_t>(storeDim), width, 1, columns});
  for (int64_t i = 0; i < rows; ++i) {
    moveTo(loadDim, first, i);
    store({{square[i]}, false});
  }
  point.setLanes(Lanes());
  point.setDim(loadDim, first);
}
