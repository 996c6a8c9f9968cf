// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/RowScratch.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

RowScratch::RowScratch(KernelFunction &kernel, Location loc, VectorType type, int64_t groups,
                       int64_t rows)
    : IndexArithmetic(kernel.builder, loc), type(type), groups(groups),
      buffer(kernel.scratch(type.getElementType(), rows * lanes())) {}

Value RowScratch::addressOf(Value row, int64_t group) {
  return add(times(row, lanes()), group * type.getDimSize(0));
}

Value RowScratch::load(Value row, int64_t group) {
  return vector::LoadOp::create(builder, loc, type, buffer, addressOf(row, group));
}

void RowScratch::store(Value vector, Value row, int64_t group) {
  vector::StoreOp::create(builder, loc, vector, buffer, addressOf(row, group));
}

TileOperand RowScratch::at(AffineExpr row, AffineExpr lane) const {
  return {buffer, row * lanes() + lane};
}
