// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/X86/Bf16Split.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace weft;

static VectorType wordsLike(Value vector) {
  auto type = cast<VectorType>(vector.getType());
  return type.cloneWith({}, IntegerType::get(type.getContext(), 32));
}

static Value splatOf(OpBuilder &builder, Location loc, VectorType type, uint32_t bits) {
  return arith::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(type, APInt(/*numBits=*/32, bits)));
}

static uint32_t bitsOfPowerOfTwo(int exponent) { return uint32_t(exponent + 127) << 23; }

/// Absolute values as integer bits, which have the same order.
static Value magnitudeOf(OpBuilder &builder, Location loc, Value vector) {
  VectorType words = wordsLike(vector);
  Value bits = arith::BitcastOp::create(builder, loc, words, vector);
  return arith::AndIOp::create(builder, loc, bits, splatOf(builder, loc, words, 0x7fffffff));
}

static Bf16Split partOfBFloat(OpBuilder &builder, Location loc, Value vector) {
  VectorType words = wordsLike(vector);
  auto halves = words.cloneWith({}, builder.getI16Type());
  Value bits = arith::BitcastOp::create(builder, loc, halves, vector);
  Value wide = arith::ExtUIOp::create(builder, loc, words, bits);
  return {arith::ShLIOp::create(builder, loc, wide, splatOf(builder, loc, words, 16))};
}

Bf16Split weft::splitFloat(OpBuilder &builder, Location loc, Value vector) {
  if (getElementTypeOrSelf(vector.getType()).isBF16())
    return partOfBFloat(builder, loc, vector);
  VectorType words = wordsLike(vector);
  // Flush small inputs: their parts would be denormal, and arithmetic on denormals is some hundred
  // times slower.
  Value isSplit = arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::uge, magnitudeOf(builder, loc, vector),
      splatOf(builder, loc, words, bitsOfPowerOfTwo(smallestSplitExponent)));
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vector.getType()));
  vector = arith::SelectOp::create(builder, loc, isSplit, vector, zero);
  // Round to nearest rather than truncate: with truncation all neglected products would have the
  // sign of the exact product, and their errors would add up.
  Value half = splatOf(builder, loc, words, 0x8000), upper = splatOf(builder, loc, words, ~0xffffu);
  Bf16Split parts;
  for ([[maybe_unused]] size_t i : llvm::seq(2)) {
    Value bits = arith::BitcastOp::create(builder, loc, words, vector);
    Value rounded = arith::AddIOp::create(builder, loc, bits, half);
    parts.push_back(arith::AndIOp::create(builder, loc, rounded, upper));
    Value part = arith::BitcastOp::create(builder, loc, vector.getType(), parts.back());
    vector = arith::SubFOp::create(builder, loc, vector, part);
  }
  parts.push_back(arith::BitcastOp::create(builder, loc, words, vector));
  return parts;
}

Value weft::pairLanes(OpBuilder &builder, Location loc, Value lower, Value upper) {
  Value sixteen = splatOf(builder, loc, cast<VectorType>(lower.getType()), 16);
  Value shifted = arith::ShRUIOp::create(builder, loc, lower, sixteen);
  return arith::OrIOp::create(builder, loc, shifted, upper);
}

Value weft::joinLanes(OpBuilder &builder, Location loc, Value first, Value second) {
  auto words = cast<VectorType>(first.getType());
  int64_t count = 2 * words.getDimSize(0);
  auto halves = VectorType::get({count}, builder.getI16Type());
  Value a = vector::BitCastOp::create(builder, loc, halves, first);
  Value b = vector::BitCastOp::create(builder, loc, halves, second);
  SmallVector<int64_t> upper;
  for (int64_t lane : llvm::seq(count))
    upper.push_back(2 * lane + 1);
  Value joined = vector::ShuffleOp::create(builder, loc, a, b, upper);
  return vector::BitCastOp::create(builder, loc, words, joined);
}

MagnitudeWatch::MagnitudeWatch(OpBuilder &builder, Location loc, int64_t lanes, Zeros zeros)
    : builder(builder), loc(loc), type(VectorType::get({lanes}, builder.getI32Type())),
      first(zeros == Apart ? 1 : 0) {}

Value MagnitudeWatch::splat(uint32_t bits) { return splatOf(builder, loc, type, bits); }

/// {smallest magnitude minus `first`, largest magnitude}, as bits.
MagnitudeWatch::State MagnitudeWatch::begin() { return {splat(~0u), splat(0)}; }

void MagnitudeWatch::see(MutableArrayRef<Value> state, Value vector) {
  Value bits = magnitudeOf(builder, loc, vector);
  // Unsigned wrap-around turns magnitudes below `first`, the zeros, into the largest.
  Value counted = first ? arith::SubIOp::create(builder, loc, bits, splat(first)) : bits;
  state[0] = arith::MinUIOp::create(builder, loc, state[0], counted);
  state[1] = arith::MaxUIOp::create(builder, loc, state[1], bits);
}

Value MagnitudeWatch::allLanes(arith::CmpIPredicate predicate, Value lanes, uint32_t bound) {
  Value each = arith::CmpIOp::create(builder, loc, predicate, lanes, splat(bound));
  return vector::ReductionOp::create(builder, loc, vector::CombiningKind::AND, each);
}

Value MagnitudeWatch::reach(ArrayRef<Value> state, int exponent) {
  return allLanes(arith::CmpIPredicate::uge, state[0], bitsOfPowerOfTwo(exponent) - first);
}

Value MagnitudeWatch::below(ArrayRef<Value> state, int exponent) {
  return allLanes(arith::CmpIPredicate::ult, state[1], bitsOfPowerOfTwo(exponent));
}
