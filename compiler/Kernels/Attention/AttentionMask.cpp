// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Masks are contiguous along the keys: vectors of keys are loaded, and transposed in registers
// unless the mask is broadcast over queries.
#include "compiler/Kernels/Attention/AttentionMask.h"
#include "compiler/Kernels/Emission/RegisterTranspose.h"
#include "compiler/Kernels/Emission/StoredIndex.h"
#include "compiler/Kernels/Emission/WideningLoad.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

/// Whether `tensor` has the same value in all lanes of `point`; found by emitting it into a block
/// that is discarded.
static bool isUniform(ElementEmitter &point, Value tensor, ArrayRef<AffineExpr> index) {
  OpBuilder::InsertionGuard guard(point.builder);
  Block scrap;
  point.builder.setInsertionPointToStart(&scrap);
  point.forget();
  bool uniform = point.emitAt(tensor, index).uniform;
  point.forget();
  return uniform;
}

AttentionMask::AttentionMask(AttentionOp op, ElementEmitter &point, ArrayRef<AffineExpr> scoreIndex,
                             unsigned query, unsigned key)
    : point(point), query(query), key(key) {
  if (!op.getMask())
    return;
  boolean = getElementTypeOrSelf(op.getMask().getType()).isInteger(1);
  if (std::optional<APFloat> score = op.getHiddenScore())
    hiddenScore = score->convertToDouble();
  std::tie(mask, index) = storedAt(op.getMask(), scoreIndex, point.space);
  shared = isUniform(point, mask, index);
}

void AttentionMask::reserve(KernelFunction &kernel, VectorType vectorType, int64_t keys,
                            int64_t blockLanes) {
  type = vectorType;
  lanes = blockLanes;
  // The last vector of keys may extend past the block.
  scratch =
      kernel.scratch(type.getElementType(), shared ? keys + type.getNumElements() : keys * lanes);
}

Value AttentionMask::address(Value slot, Value lane) {
  OpBuilder &builder = point.builder;
  if (shared)
    return slot;
  Value size = arith::ConstantIndexOp::create(builder, point.loc, lanes);
  Value row = arith::MulIOp::create(builder, point.loc, slot, size);
  return arith::AddIOp::create(builder, point.loc, row, lane);
}

Value AttentionMask::emit() {
  OpBuilder &builder = point.builder;
  point.forget();
  Value part = point.asVectors(point.emitAt(mask, index)).front();
  if (!boolean)
    return part;
  auto splat = [&](double value) { return emitSplat(builder, point.loc, type, value); };
  Value zero = arith::ConstantOp::create(builder, point.loc, builder.getZeroAttr(part.getType()));
  Value kept = arith::CmpIOp::create(builder, point.loc, arith::CmpIPredicate::ne, part, zero);
  double hidden = hiddenScore.value_or(-std::numeric_limits<double>::infinity());
  return arith::SelectOp::create(builder, point.loc, kept, splat(0.0), splat(hidden));
}

void AttentionMask::copy(Value slot, int64_t valid) {
  OpBuilder &builder = point.builder;
  Location loc = point.loc;
  int64_t width = type.getNumElements();
  Lanes ofQueries = point.getLanes();
  Value first = point.dimValue(query);
  point.setLanes({static_cast<int64_t>(key), width, 1, valid});
  if (shared) {
    vector::StoreOp::create(builder, loc, emit(), scratch, slot);
  } else {
    emitLoop(builder, loc, 0, ofQueries.groups * width, width, {}, [&](Value lane, ValueRange) {
      SmallVector<Value> rows;
      for (int64_t i = 0; i < width; ++i) {
        Value offset = arith::ConstantIndexOp::create(builder, loc, i);
        Value place = arith::AddIOp::create(builder, loc, lane, offset);
        point.setDim(query, arith::AddIOp::create(builder, loc, first, place));
        rows.push_back(emit());
      }
      SmallVector<Value> columns = transposeVectors(builder, loc, rows);
      for (int64_t i = 0; i < valid; ++i) {
        Value offset = arith::ConstantIndexOp::create(builder, loc, i);
        Value row = arith::AddIOp::create(builder, loc, slot, offset);
        vector::StoreOp::create(builder, loc, columns[i], scratch, address(row, lane));
      }
      return SmallVector<Value>();
    });
    point.setDim(query, first);
  }
  point.setLanes(ofQueries);
}

Value AttentionMask::load(Value slot, int64_t group) {
  OpBuilder &builder = point.builder;
  Value lane = arith::ConstantIndexOp::create(builder, point.loc, group * type.getNumElements());
  Value place = address(slot, lane);
  return shared ? loadBroadcast(builder, point.loc, type, scratch, place)
                : loadVector(builder, point.loc, type, scratch, place, Value());
}

Value AttentionMask::replaceIn(Value score, Value ofMask) {
  OpBuilder &builder = point.builder;
  Value zero = emitSplat(builder, point.loc, type, 0.0);
  Value kept = arith::CmpFOp::create(builder, point.loc, arith::CmpFPredicate::OEQ, ofMask, zero);
  return arith::SelectOp::create(builder, point.loc, kept, score, ofMask);
}
