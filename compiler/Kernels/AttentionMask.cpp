// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/AttentionMask.h"
#include "compiler/Kernels/StoredIndex.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

/// Scores where `conditions` hold, -inf elsewhere.
static void keepWhere(PointEmitter &point, ArrayRef<Value> conditions,
                      MutableArrayRef<Value> scores) {
  auto type = cast<VectorType>(scores.front().getType());
  Attribute lowest =
      point.builder.getFloatAttr(type.getElementType(), -std::numeric_limits<double>::infinity());
  Value hidden =
      arith::ConstantOp::create(point.builder, point.loc, DenseElementsAttr::get(type, lowest));
  for (auto [score, condition] : llvm::zip_equal(scores, conditions))
    score = arith::SelectOp::create(point.builder, point.loc, condition, score, hidden);
}

static void applyMask(Value mask, PointEmitter &point, ArrayRef<AffineExpr> index,
                      MutableArrayRef<Value> scores) {
  OpBuilder &builder = point.builder;
  Location loc = point.loc;
  bool boolean = getElementTypeOrSelf(mask.getType()).isInteger(1);
  auto [stored, physical] = storedAt(mask, index, point.space);
  SmallVector<Value, 4> values = point.asVectors(point.emitAt(stored, physical));
  if (!boolean) {
    for (auto [score, part] : llvm::zip_equal(scores, values))
      score = arith::AddFOp::create(builder, loc, score, part);
    return;
  }
  SmallVector<Value> conditions;
  for (Value part : values) {
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(part.getType()));
    conditions.push_back(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, part, zero));
  }
  keepWhere(point, conditions, scores);
}

/// Keys after a query are hidden from it.
static void applyCausality(PointEmitter &point, AffineExpr query, AffineExpr key,
                           MutableArrayRef<Value> scores) {
  OpBuilder &builder = point.builder;
  Location loc = point.loc;
  int64_t width = point.getLanes().width;
  auto indices = VectorType::get({width}, builder.getIndexType());
  Value token = vector::BroadcastOp::create(builder, loc, indices, point.indexValue(key));
  Value first = vector::BroadcastOp::create(builder, loc, indices, point.indexValue(query));
  SmallVector<Value> conditions;
  for (size_t group = 0; group < scores.size(); ++group) {
    SmallVector<APInt> offsets;
    for (int64_t i = 0; i < width; ++i)
      offsets.push_back(APInt(64, group * width + i));
    Value offset =
        arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(indices, offsets));
    Value position = arith::AddIOp::create(builder, loc, first, offset);
    conditions.push_back(
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule, token, position));
  }
  keepWhere(point, conditions, scores);
}

SmallVector<Value> weft::maskScores(AttentionOp op, PointEmitter &point, ArrayRef<AffineExpr> index,
                                    ArrayRef<Value> scores) {
  OpBuilder &builder = point.builder;
  auto type = cast<VectorType>(scores.front().getType());
  Attribute factor = builder.getFloatAttr(type.getElementType(), op.getScale().convertToDouble());
  Value scale = arith::ConstantOp::create(builder, point.loc, DenseElementsAttr::get(type, factor));
  SmallVector<Value> masked;
  for (Value score : scores)
    masked.push_back(arith::MulFOp::create(builder, point.loc, score, scale));
  if (Value mask = op.getMask())
    applyMask(mask, point, index, masked);
  if (op.getCausal())
    applyCausality(point, index[index.size() - 2], index.back(), masked);
  return masked;
}
