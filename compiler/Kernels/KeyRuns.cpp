// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/KeyRuns.h"
#include "compiler/Kernels/KernelFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

SmallVector<Value>
weft::emitSteps(OpBuilder &builder, Location loc, Value count, int64_t total, int64_t step,
                Carried carried,
                llvm::function_ref<SmallVector<Value>(Value, int64_t, Carried)> body) {
  auto loop = [&](auto low, auto high, int64_t size, ValueRange values) {
    return emitLoop(builder, loc, low, high, step, values, [&](Value first, ValueRange now) {
      return body(first, size, SmallVector<Value>(now));
    });
  };
  if (std::optional<int64_t> known = getConstantIntValue(count)) {
    int64_t whole = *known / step * step;
    return loop(whole, *known, *known - whole, loop(int64_t(0), whole, step, carried));
  }
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  if (total % step == 0)
    return loop(zero, count, step, carried);
  Value size = arith::ConstantIndexOp::create(builder, loc, step);
  Value rest = arith::RemUIOp::create(builder, loc, count, size);
  Value whole = arith::SubIOp::create(builder, loc, count, rest);
  return loop(whole, count, total % step, loop(zero, whole, step, carried));
}

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

KeyRuns::KeyRuns(OpBuilder &builder, Location loc, const AttentionSchedule &schedule,
                 int64_t groups, int64_t queries, int64_t keys, Value firstQuery)
    : IndexArithmetic(builder, loc), schedule(schedule), groups(groups), queries(queries),
      keys(keys), firstQuery(firstQuery) {
  seenByAll = constant(keys);
  tileCount = constant(llvm::divideCeil(keys, schedule.keyTile));
  if (!firstQuery)
    return;
  seenByAll = least(firstQuery, seenByAll);
  tileCount = arith::CeilDivUIOp::create(builder, loc, seenByAll, constant(schedule.keyTile));
}

SmallVector<Value> KeyRuns::ofTiles(Value low, Value high, Carried carried, RunBody body) {
  Value size = constant(schedule.keyTile);
  return emitLoop(builder, loc, low, high, 1, carried, [&](Value tile, ValueRange now) {
    KeyRun run{tile, constant(0), size, {}};
    if (firstQuery || keys % schedule.keyTile != 0) {
      run.count = least(subtract(seenByAll, times(tile, schedule.keyTile)), size);
    }
    run.slot = times(subtract(tile, low), schedule.keyTile);
    return body(run, SmallVector<Value>(now));
  });
}

SmallVector<Value> KeyRuns::ofDiagonal(Value slot, Carried carried, RunBody body) {
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
