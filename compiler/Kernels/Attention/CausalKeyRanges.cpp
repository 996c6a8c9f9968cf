// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Attention/CausalKeyRanges.h"
#include "compiler/Kernels/Emission/KernelFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

SmallVector<Value> weft::onSeeing(const KeyRun &run, int64_t groups, Carried carried,
                                  llvm::function_ref<SmallVector<Value>(Carried)> body) {
  SmallVector<Value> all(carried), seeing;
  auto sees = [&](int64_t i) { return i % groups >= run.firstGroup; };
  for (auto [i, value] : llvm::enumerate(all))
    if (sees(i))
      seeing.push_back(value);
  SmallVector<Value> next = body(seeing);
  auto from = next.begin();
  for (auto [i, value] : llvm::enumerate(all))
    if (sees(i))
      value = *from++;
  return all;
}

Value weft::hideLater(OpBuilder &builder, Location loc, Value scores, Value place) {
  auto vectorType = cast<VectorType>(scores.getType());
  int64_t width = vectorType.getNumElements();
  auto type = VectorType::get({width}, builder.getI32Type());
  SmallVector<int32_t> numbers = llvm::to_vector(llvm::seq<int32_t>(0, width));
  Value own = arith::ConstantOp::create(builder, loc, builder.getI32VectorAttr(numbers));
  Value number = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), place);
  Value limit = vector::BroadcastOp::create(builder, loc, type, number);
  Value sees = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, own, limit);
  Value hidden = emitSplat(builder, loc, vectorType, -std::numeric_limits<double>::infinity());
  return arith::SelectOp::create(builder, loc, sees, scores, hidden);
}

CausalKeyRanges::CausalKeyRanges(OpBuilder &builder, Location loc,
                                 const AttentionSchedule &schedule, int64_t groups, int64_t queries,
                                 int64_t keys, Value firstQuery, Value keysEnd)
    : IndexArithmetic(builder, loc), schedule(schedule), groups(groups), queries(queries),
      keys(keys), firstQuery(firstQuery) {
  seenByAll = constant(keys);
  mayEndInTile = firstQuery || keys % schedule.keyTile != 0;
  tileCount = constant(llvm::divideCeil(keys, schedule.keyTile));
  if (!firstQuery) {
    if (keysEnd) {
      tileCount = arith::CeilDivUIOp::create(builder, loc, keysEnd, constant(schedule.keyTile));
      // Steps over keys divide a vector of them: what is hidden is seen up to there.
      if (keys % schedule.width == 0) {
        Value vectors = arith::CeilDivUIOp::create(builder, loc, keysEnd, constant(schedule.width));
        seenByAll = times(vectors, schedule.width);
        mayEndInTile = true;
      }
    }
    return;
  }
  seenByAll = least(firstQuery, seenByAll);
  tileCount = arith::CeilDivUIOp::create(builder, loc, seenByAll, constant(schedule.keyTile));
}

SmallVector<Value> CausalKeyRanges::ofTiles(Value low, Value high, Carried carried, RunBody body) {
  Value size = constant(schedule.keyTile);
  return emitLoop(builder, loc, low, high, 1, carried, [&](Value tile, ValueRange now) {
    KeyRun run{tile, constant(0), size, {}};
    if (mayEndInTile)
      run.count = least(subtract(seenByAll, times(tile, schedule.keyTile)), size);
    run.slot = times(subtract(tile, low), schedule.keyTile);
    return body(run, SmallVector<Value>(now));
  });
}

SmallVector<Value> CausalKeyRanges::ofDiagonal(Value slot, Carried carried, RunBody body) {
  SmallVector<Value> now(carried);
  bool mayEnd = int64_t(llvm::alignTo(queries, schedule.lanes())) > keys;
  for (int64_t group = 0; group < groups; ++group) {
    int64_t offset = group * schedule.width;
    Value token = add(firstQuery, offset);
    Value width = constant(schedule.width);
    KeyRun run{dividedBy(token, schedule.keyTile),
               remainderOf(token, schedule.keyTile),
               width,
               add(slot, offset),
               group,
               /*diagonal=*/true};
    if (mayEnd) {
      Value end = arith::MaxUIOp::create(builder, loc, token, constant(keys));
      Value left = subtract(end, token);
      run.count = least(left, width);
    }
    now = body(run, now);
  }
  return now;
}
