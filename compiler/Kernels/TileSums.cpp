// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/TileSums.h"
#include "compiler/Kernels/Prefetch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

TileSums::TileSums(KernelFunction &kernel, PointEmitter &point, Location loc,
                   const ContractionRoles &roles, ArrayRef<unsigned> reduced,
                   const ContractionSchedule &schedule, Type element, Value blocks)
    : IndexArithmetic(kernel.builder, loc), point(point), roles(roles), reduced(reduced),
      schedule(schedule), type(VectorType::get({schedule.width}, element)), blocks(blocks) {
  if (schedule.strip)
    strip.emplace(kernel, point, loc, roles, schedule, reduced.front());
  if (schedule.paired)
    pairs.emplace(kernel, point, loc, roles, reduced, schedule);
  if (schedule.panelPrefetch)
    panelPrefetch.emplace(point, roles, this->reduced, schedule.panelPrefetch);
}

void TileSums::copyVectors(Value panel, Value start, int64_t size) {
  pairs->emitCopy(panel, start, size);
}

void TileSums::enterPanel(Value panel, Value start) {
  if (pairs)
    pairs->enter(panel, start);
}

SmallVector<Value> TileSums::emit(int64_t rows, int64_t groups, Value start, int64_t size,
                                  const Ahead &ahead) {
  if (ahead.turn)
    panelPrefetch->startTile(ahead.turn, start, size);
  if (strip)
    strip->enterTile(ahead.tile, ahead.tiles);
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  SmallVector<Value> zeros(rows * groups, zero);
  int64_t count = llvm::divideCeil(size, schedule.summands) * point.space.count(blockDims());
  if (count > 1)
    return emitBlocks(rows, start, size, zeros, ahead);
  return emitReduction(reduced, rows, start, size, zeros, ahead);
}

/// Sums block by block. What a block has summed goes to the total in memory when the next
/// begins, so that the first finds none there and the last adds it in registers.
SmallVector<Value> TileSums::emitBlocks(int64_t rows, Value start, int64_t size,
                                        ArrayRef<Value> zeros, const Ahead &ahead) {
  ArrayRef<unsigned> dims = ArrayRef(reduced).drop_front(blockDims().size());
  // Carried: how many blocks there were, and the sums of the last of them.
  SmallVector<Value> carried{constant(0)};
  llvm::append_range(carried, zeros);
  auto addBlock = [&](ValueRange before, Value first, int64_t summands) {
    emitPutBy(before.front(), before.drop_front());
    SmallVector<Value> after{add(before.front(), 1)};
    llvm::append_range(after, emitReduction(dims, rows, first, summands, zeros, ahead));
    return after;
  };
  int64_t whole = size / schedule.summands * schedule.summands;
  carried = emitLoops(point, blockDims(), carried, [&](ValueRange before) {
    SmallVector<Value> now = emitLoop(
        builder, loc, 0, whole, schedule.summands, before, [&](Value offset, ValueRange earlier) {
          return addBlock(earlier, add(start, offset), schedule.summands);
        });
    return whole < size ? addBlock(now, add(start, whole), size - whole) : now;
  });
  SmallVector<Value> totals;
  for (auto [i, sum] : llvm::enumerate(ArrayRef(carried).drop_front()))
    totals.push_back(arith::AddFOp::create(builder, loc, loadTotal(i), sum));
  return totals;
}

/// The dims that start a new block with each of their steps.
ArrayRef<unsigned> TileSums::blockDims() const {
  int64_t count = schedule.blockDims - schedule.outerChunks;
  return ArrayRef(reduced).take_front(std::max<int64_t>(count, 0));
}

Value TileSums::loadTotal(int64_t i) {
  return vector::LoadOp::create(builder, loc, type, blocks, constant(i * schedule.width));
}

/// Adds the sums of the block before block `number` to the total; the first has none before it.
void TileSums::emitPutBy(Value number, ValueRange sums) {
  auto store = [&](bool isFirst) {
    for (auto [i, sum] : llvm::enumerate(sums)) {
      Value total = isFirst ? sum : arith::AddFOp::create(builder, loc, loadTotal(i), sum);
      vector::StoreOp::create(builder, loc, total, blocks, constant(i * schedule.width));
    }
  };
  auto isNumber = [&](int64_t value) {
    return is(arith::CmpIPredicate::eq, number, constant(value));
  };
  emitIf(
      builder, loc, isNumber(1), [&] { store(/*isFirst=*/true); },
      [&] {
        emitIf(builder, loc, is(arith::CmpIPredicate::ugt, number, constant(1)),
               [&] { store(/*isFirst=*/false); });
      });
}

SmallVector<Value> TileSums::emitReduction(ArrayRef<unsigned> dims, int64_t rows, Value start,
                                           int64_t size, ArrayRef<Value> accumulators,
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

/// Steps of the innermost dim.
SmallVector<Value> TileSums::emitSteps(int64_t rows, Value start, int64_t size,
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

SmallVector<Value> TileSums::emitStep(int64_t rows, bool isOddLast, ArrayRef<Value> accumulators) {
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
  return emitTileStep(point, scalars, stride, vectors, rows, accumulators);
}

/// What comes after this tile arrives while it computes.
void TileSums::emitFetch(const Ahead &ahead) {
  if (ahead.turn)
    panelPrefetch->emit();
  if (strip)
    strip->emitPrefetch();
  if (!ahead.row)
    return;
  Value memory = point.getBuffer(roles.scalars.memory)->flat;
  Value current = point.indexValue(getAffineDimExpr(*roles.row, builder.getContext()));
  point.setDim(*roles.row, ahead.row);
  Value address = point.indexValue(roles.scalars.position);
  emitSharedPrefetch(builder, loc, {memory, address, schedule.rows, roles.rowStride(point.space)},
                     ahead.tile, ahead.tiles);
  point.setDim(*roles.row, current);
}
