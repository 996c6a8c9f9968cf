// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/TileAccumulation.h"
#include "compiler/Kernels/Emission/Prefetch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

TileAccumulation::TileAccumulation(KernelFunction &kernel, ElementEmitter &point, Location loc,
                                   const ContractionRoles &roles, ArrayRef<unsigned> reduced,
                                   const ContractionSchedule &schedule, Type element, Value blocks)
    : IndexArithmetic(kernel.builder, loc), point(point), roles(roles), reduced(reduced),
      schedule(schedule), element(element), blocks(blocks) {
  if (schedule.strip)
    strip.emplace(kernel, point, loc, roles, schedule, reduced.front());
  if (schedule.paired)
    pairs.emplace(kernel, point, loc, roles, reduced, schedule);
  if (schedule.copiedSteps)
    copies.emplace(kernel, point, loc, roles, reduced.back(), schedule);
  if (schedule.panelPrefetch)
    panelPrefetch.emplace(point, roles, this->reduced, schedule.panelPrefetch);
  if (schedule.stridedPrefetch)
    stridedPrefetch.emplace(point, roles, reduced.back(), schedule);
}

void TileAccumulation::copyVectors(Value panel, Value start, int64_t size) {
  pairs->emitCopy(panel, start, size);
}

void TileAccumulation::enterPanel(Value panel, Value start) {
  if (pairs)
    pairs->enter(panel, start);
}

SmallVector<Value> TileAccumulation::emit(int64_t rows, int64_t groups, Value start, int64_t size,
                                          const Ahead &ahead) {
  if (ahead.step) {
    PanelAhead &next = copies ? copies->nextPanel() : stridedPrefetch->nextPanel();
    next.startTile(ahead.turn, start, size, ahead.step, ahead.panelsBetween);
  } else if (ahead.turn) {
    panelPrefetch->startTile(ahead.turn, start, size, ahead.panelsBetween);
  }
  if (strip)
    strip->enterTile(ahead.tile, ahead.tiles);
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vectorType()));
  SmallVector<Value> zeros(rows * groups, zero);
  int64_t segments = llvm::divideCeil(size, schedule.segment) * point.space.count(blockDims());
  if (segments > 1)
    return emitSegments(rows, start, size, zeros, ahead);
  return emitReduction(reduced, rows, start, size, zeros, ahead);
}

/// Accumulates segment by segment. Before each segment one part of the accumulators, in rotation,
/// is added to its totals in memory: with all at once, the FMAs would stall on the stores.
SmallVector<Value> TileAccumulation::emitSegments(int64_t rows, Value start, int64_t size,
                                                  ArrayRef<Value> zeros, const Ahead &ahead) {
  ArrayRef<unsigned> dims = ArrayRef(reduced).drop_front(blockDims().size());
  // Loop-carried: the number of segments so far, and accumulators not yet added to the totals.
  SmallVector<Value> carried{constant(0)};
  llvm::append_range(carried, zeros);
  auto addSegment = [&](ValueRange before, Value first, int64_t steps) {
    Value number = before.front(), turn = remainderOf(number, schedule.turns);
    SmallVector<Value> after{add(number, 1)};
    SmallVector<Value> sums = emitTurn(turn, 0, schedule.turns, number, before.drop_front());
    llvm::append_range(after, emitReduction(dims, rows, first, steps, sums, ahead));
    return after;
  };
  int64_t segment = schedule.segment, whole = size / segment * segment;
  carried = emitLoops(point, blockDims(), carried, [&](ValueRange before) {
    SmallVector<Value> now =
        emitLoop(builder, loc, 0, whole, segment, before, [&](Value offset, ValueRange earlier) {
          return addSegment(earlier, add(start, offset), segment);
        });
    return whole < size ? addSegment(now, add(start, whole), size - whole) : now;
  });
  SmallVector<Value> totals;
  for (auto [i, sum] : llvm::enumerate(ArrayRef(carried).drop_front()))
    totals.push_back(arith::AddFOp::create(builder, loc, loadTotal(i), sum));
  return totals;
}

/// Outer reduced dims with a new segment at each step.
ArrayRef<unsigned> TileAccumulation::blockDims() const {
  int64_t count = schedule.blockDims - schedule.outerChunks;
  return ArrayRef(reduced).take_front(std::max<int64_t>(count, 0));
}

Value TileAccumulation::loadTotal(int64_t i) {
  return vector::LoadOp::create(builder, loc, vectorType(), blocks, constant(i * schedule.width));
}

/// Adds part `turn`, known to be in [begin, end), of the accumulators to the totals, before segment
/// `number`. Returns the remaining accumulators.
SmallVector<Value> TileAccumulation::emitTurn(Value turn, int64_t begin, int64_t end, Value number,
                                              ValueRange sums) {
  if (end - begin == 1)
    return emitPutBy(begin, number, sums);
  int64_t middle = (begin + end) / 2;
  auto half = [&](int64_t from, int64_t to) {
    return [&, from, to](OpBuilder &, Location) {
      scf::YieldOp::create(builder, loc, emitTurn(turn, from, to, number, sums));
    };
  };
  Value isBelow = is(arith::CmpIPredicate::ult, turn, constant(middle));
  return scf::IfOp::create(builder, loc, isBelow, half(begin, middle), half(middle, end))
      .getResults();
}

/// Adds part `share` of the accumulators to its totals, or initialises them in the first rotation,
/// and resets it to zero.
SmallVector<Value> TileAccumulation::emitPutBy(int64_t share, Value number, ValueRange sums) {
  int64_t turns = schedule.turns, count = sums.size();
  int64_t begin = share * count / turns, end = (share + 1) * count / turns;
  auto store = [&](bool isFirst) {
    for (int64_t i = begin; i < end; ++i) {
      Value total = sums[i];
      if (!isFirst)
        total = arith::AddFOp::create(builder, loc, loadTotal(i), total);
      vector::StoreOp::create(builder, loc, total, blocks, constant(i * schedule.width));
    }
  };
  emitIf(
      builder, loc, is(arith::CmpIPredicate::ult, number, constant(turns)),
      [&] { store(/*isFirst=*/true); }, [&] { store(/*isFirst=*/false); });
  SmallVector<Value> left(sums);
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vectorType()));
  std::fill(left.begin() + begin, left.begin() + end, zero);
  return left;
}

SmallVector<Value> TileAccumulation::emitReduction(ArrayRef<unsigned> dims, int64_t rows,
                                                   Value start, int64_t size,
                                                   ArrayRef<Value> accumulators,
                                                   const Ahead &ahead) {
  if (dims.empty())
    return emitStep(rows, /*isOddLast=*/false, accumulators);
  unsigned dim = dims.front();
  if (dims.size() > 1)
    return emitLoop(builder, loc, 0, point.space.extent(dim), 1, accumulators,
                    [&](Value variable, ValueRange now) {
                      point.setDim(dim, variable);
                      return emitReduction(dims.drop_front(), rows, start, size,
                                           SmallVector<Value>(now), ahead);
                    });
  if (!ahead.row && !ahead.turn && !strip)
    return emitSteps(rows, start, size, accumulators);
  int64_t interval = strip ? strip->stepsPerFetch() : ContractionSchedule::stepsPerFetch;
  int64_t whole = size / interval * interval;
  SmallVector<Value> sums =
      emitLoop(builder, loc, 0, whole, interval, accumulators, [&](Value variable, ValueRange now) {
        Value first = add(start, variable);
        point.setDim(dim, first);
        emitFetch(ahead);
        return emitSteps(rows, first, interval, SmallVector<Value>(now));
      });
  if (whole == size)
    return sums;
  return emitSteps(rows, add(start, whole), size - whole, sums);
}

/// Accumulates `size` steps of the innermost dim from `start` on.
SmallVector<Value> TileAccumulation::emitSteps(int64_t rows, Value start, int64_t size,
                                               ArrayRef<Value> accumulators) {
  unsigned dim = reduced.back();
  int64_t together = schedule.paired ? 2 : 1;
  int64_t whole = size / together * together;
  SmallVector<Value> sums = emitLoop(builder, loc, 0, whole, schedule.unroll, accumulators,
                                     [&](Value variable, ValueRange carried) {
                                       Value base = add(start, variable);
                                       SmallVector<Value> now(carried);
                                       for (int64_t step = 0; step < schedule.unroll; ++step) {
                                         point.setDim(dim, add(base, step));
                                         if (step % together == 0)
                                           now = emitStep(rows, /*isOddLast=*/false, now);
                                       }
                                       return now;
                                     });
  if (whole == size)
    return sums;
  point.setDim(dim, add(start, whole));
  return emitStep(rows, /*isOddLast=*/true, sums);
}

SmallVector<Value> TileAccumulation::emitStep(int64_t rows, bool isOddLast,
                                              ArrayRef<Value> accumulators) {
  if (schedule.stepsAhead)
    emitVectorFetch();
  TileOperand scalars{point.getBuffer(roles.scalars.memory)->flat, roles.scalars.position,
                      roles.lanesPerScalar, roles.scalarGap};
  int64_t stride = roles.rowStride(point.space);
  if (strip) {
    scalars = strip->operand();
    stride = strip->rowStride();
  }
  if (pairs)
    return pairs->emitSteps(scalars, stride, rows, isOddLast, accumulators);
  TileOperand vectors{point.getBuffer(roles.vectors.memory)->flat, roles.vectors.position};
  if (copies)
    vectors = copies->operand();
  return emitTileStep(point, scalars, stride, vectors, rows, accumulators);
}

/// Prefetches the vectors of the step `stepsAhead` later, clamped to the last step.
void TileAccumulation::emitVectorFetch() {
  unsigned dim = reduced.front();
  Value current = point.dimValue(dim);
  Value last = constant(point.space.extent(dim) - 1);
  point.setDim(dim, least(add(current, schedule.stepsAhead), last));
  emitRunPrefetch(builder, loc, point.getBuffer(roles.vectors.memory)->flat,
                  point.indexValue(roles.vectors.position),
                  point.getLanes().groups * schedule.width, CacheLevel::Second);
  point.setDim(dim, current);
}

/// Prefetches or packs what is used after this tile, overlapped with its FMAs.
void TileAccumulation::emitFetch(const Ahead &ahead) {
  if (copies)
    copies->emitAhead();
  else if (ahead.step)
    stridedPrefetch->emit();
  else if (ahead.turn)
    panelPrefetch->emit();
  if (strip)
    strip->emitPrefetch();
  if (!ahead.row)
    return;
  Value memory = point.getBuffer(roles.scalars.memory)->flat;
  Value current = point.dimValue(*roles.row);
  point.setDim(*roles.row, ahead.row);
  Value address = point.indexValue(roles.scalars.position);
  emitSharedPrefetch(builder, loc, {memory, address, schedule.rows, roles.rowStride(point.space)},
                     ahead.tile, ahead.tiles);
  point.setDim(*roles.row, current);
}
