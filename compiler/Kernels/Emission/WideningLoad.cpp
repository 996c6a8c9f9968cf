// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/WideningLoad.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

static Value widened(OpBuilder &builder, Location loc, Type type, Value value) {
  return value.getType() == type ? value
                                 : arith::ExtFOp::create(builder, loc, type, value).getResult();
}

Value weft::maskOfFirst(OpBuilder &builder, Location loc, int64_t count, int64_t width) {
  if (count >= width)
    return {};
  SmallVector<bool> bits(width, false);
  std::fill_n(bits.begin(), count, true);
  auto type = VectorType::get({width}, builder.getI1Type());
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, bits));
}

Value weft::loadVector(OpBuilder &builder, Location loc, VectorType type, Value memory,
                       Value address, Value mask) {
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  auto stored = VectorType::get(type.getShape(), element);
  if (!mask)
    return widened(builder, loc, type,
                   vector::LoadOp::create(builder, loc, stored, memory, address));
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(stored));
  return widened(builder, loc, type,
                 vector::MaskedLoadOp::create(builder, loc, stored, memory, address, mask, zero));
}

Value weft::loadBroadcast(OpBuilder &builder, Location loc, VectorType type, Value memory,
                          Value address) {
  Value scalar = memref::LoadOp::create(builder, loc, memory, address);
  // Widen after the broadcast: that is a vector instruction with a memory operand, where widening
  // the scalar first takes three scalar instructions.
  auto stored = VectorType::get(type.getShape(), scalar.getType());
  return widened(builder, loc, type, vector::BroadcastOp::create(builder, loc, stored, scalar));
}
