// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Transposition.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

SmallVector<Value> weft::transposeVectors(OpBuilder &builder, Location loc, ArrayRef<Value> rows) {
  SmallVector<Value> square(rows);
  int64_t size = rows.size();
  for (int64_t block = size / 2; block > 0; block /= 2) {
    // Of rows i and i + block: the off-diagonal blocks change places.
    SmallVector<int64_t> upper, lower;
    for (int64_t lane = 0; lane < size; ++lane) {
      bool second = lane & block;
      upper.push_back(second ? size + lane - block : lane);
      lower.push_back(second ? size + lane : lane + block);
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
