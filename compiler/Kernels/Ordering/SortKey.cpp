// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bits of non-negative floats, as integers, have the same order; those of negative floats have
// the reverse order and are flipped.
#include "compiler/Kernels/Ordering/SortKey.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weft;

namespace {
/// Integer arithmetic on scalars and vectors alike.
struct Bits {
  OpBuilder &builder;
  Location loc;
  Type type;

  Value constant(const llvm::APInt &value) {
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(vector, value));
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  }
  Value flip(Value bits, const llvm::APInt &mask) {
    return arith::XOrIOp::create(builder, loc, bits, constant(mask));
  }
  Value choose(Value condition, const llvm::APInt &value, Value otherwise) {
    return arith::SelectOp::create(builder, loc, condition, constant(value), otherwise);
  }
  Value compare(arith::CmpIPredicate predicate, Value bits, const llvm::APInt &value) {
    return arith::CmpIOp::create(builder, loc, predicate, bits, constant(value));
  }
};
} // namespace

static Value floatKey(Bits bits, Value element, FloatType type) {
  OpBuilder &builder = bits.builder;
  Location loc = bits.loc;
  unsigned width = type.getWidth();
  auto sign = llvm::APInt::getSignMask(width), ones = llvm::APInt::getAllOnes(width);
  llvm::APInt infinity = llvm::APFloat::getInf(type.getFloatSemantics()).bitcastToAPInt();

  Value raw = arith::BitcastOp::create(builder, loc, bits.type, element);
  Value magnitude = arith::AndIOp::create(builder, loc, raw, bits.constant(~sign));
  Value negative =
      arith::ShRSIOp::create(builder, loc, raw, bits.constant(llvm::APInt(width, width - 1)));
  Value flipped = arith::OrIOp::create(builder, loc, negative, bits.constant(sign));
  Value key = arith::XOrIOp::create(builder, loc, raw, flipped);
  using P = arith::CmpIPredicate;
  key = bits.choose(bits.compare(P::eq, magnitude, llvm::APInt::getZero(width)), sign, key);
  return bits.choose(bits.compare(P::ugt, magnitude, infinity), ones, key);
}

Value weft::sortKey(OpBuilder &builder, Location loc, Value element, bool descending) {
  Type type = getElementTypeOrSelf(element.getType());
  unsigned width = type.getIntOrFloatBitWidth();
  Type integer = builder.getIntegerType(width);
  auto vector = dyn_cast<VectorType>(element.getType());
  Bits bits{builder, loc, vector ? vector.clone(integer) : integer};
  Value key;
  if (auto floating = dyn_cast<FloatType>(type))
    key = floatKey(bits, element, floating);
  else
    key = bits.flip(element, llvm::APInt::getSignMask(width));
  return descending ? bits.flip(key, llvm::APInt::getAllOnes(width)) : key;
}
