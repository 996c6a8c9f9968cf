// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/PackedAPanel.h"
#include "compiler/Kernels/Emission/Prefetch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

bool PackedAPanel::suitsPairs(const ContractionRoles &roles, const ContractionShape &shape,
                              const IndexSpace &space) {
  return roles.row && roles.outerRows.empty() && shape.reduced.size() == 1 &&
         space.coefficientOf(roles.scalars.position, *roles.row) == 1 && roles.lanesPerScalar == 0;
}

int64_t PackedAPanel::strideBytes(const ContractionRoles &roles, const ContractionShape &shape,
                                  const IndexSpace &space, Type element) {
  const ContractionOperand &scalars = roles.scalars;
  if (!suitsPairs(roles, shape, space) || getElementTypeOrSelf(scalars.memory.getType()) != element)
    return 0;
  int64_t step = *space.coefficientOf(scalars.position, shape.reduced[0]);
  return step * int64_t(element.getIntOrFloatBitWidth() / 8);
}

PackedAPanel::PackedAPanel(KernelFunction &kernel, ElementEmitter &point, Location loc,
                           const ContractionRoles &roles, const ContractionSchedule &schedule,
                           unsigned step)
    : IndexArithmetic(kernel.builder, loc), point(point), scalars(roles.scalars), row(*roles.row),
      step(step), rowCount(point.space.extent(row)), size(schedule.strip), tileRows(schedule.rows),
      width(schedule.width), stepsAtOnce(schedule.paired ? 2 : 1), lineRows(schedule.stripLine),
      memory(kernel.scratch(getElementTypeOrSelf(scalars.memory.getType()),
                            llvm::alignTo(schedule.stripSteps, stepsAtOnce) * size)),
      firstRow(cast<AffineDimExpr>(point.space.addDim(size * stepsAtOnce)).getPosition()) {}

void PackedAPanel::emitCopy(Value strip, Value start, int64_t steps, const Next &next) {
  this->start = start;
  this->steps = steps;
  Value first = times(strip, size);
  int64_t whole = steps / stepsAtOnce * stepsAtOnce;
  auto copy = [&](Value variable, bool isOddLast) {
    point.setDim(step, add(start, variable));
    Value target = times(variable, size);
    copyStep(first, target, isOddLast);
  };
  emitLoop(builder, loc, 0, whole, stepsAtOnce, {}, [&](Value variable, ValueRange) {
    copy(variable, /*isOddLast=*/false);
    return SmallVector<Value>();
  });
  if (whole < steps)
    copy(constant(whole), /*isOddLast=*/true);

  Value end = add(start, steps);
  Value isLast = is(arith::CmpIPredicate::eq, end, next.partsEnd);
  nextRow = arith::SelectOp::create(builder, loc, isLast, times(next.strip, size), first);
  nextStart = arith::SelectOp::create(builder, loc, isLast, next.start, end);
}

void PackedAPanel::enterRow(Value tileRow) {
  this->tileRow = tileRow;
  // The scratch is indexed by steps of the panel, the point by steps of the whole sum.
  Value ahead = times(tileRow, tileRows * stepsAtOnce);
  point.setDim(firstRow, subtract(ahead, times(start, size)));
}

void PackedAPanel::enterTile(Value tile, int64_t tilesOfRow) {
  // More often than every other iteration of the unrolled loop, registers spill.
  constexpr int64_t longest = ContractionSchedule::stepsPerFetch, shortest = 8;
  // A tile prefetches `share` steps of one line of rows; `tilesOfLine` tiles prefetch all its
  // steps.
  int64_t tiles = tilesOfRow * (size / tileRows), share = 0, tilesOfLine = 0;
  for (int64_t together = 1; together <= longest; together *= 2) {
    interval = std::max(longest / together, shortest);
    linesAtOnce = together * interval / longest;
    share = std::clamp<int64_t>(steps / interval * linesAtOnce, 1, steps);
    tilesOfLine = llvm::divideCeil(steps, share);
    if (lines() * tilesOfLine <= tiles)
      break;
  }
  Value number = add(times(tileRow, tilesOfRow), tile);
  Value line = least(dividedBy(number, tilesOfLine), constant(lines() - 1));
  Value firstOfShare = times(remainderOf(number, tilesOfLine), share);
  fetchedRow = least(add(nextRow, times(line, lineRows)), constant(rowCount - 1));
  fetchedStep = add(nextStart, least(firstOfShare, constant(steps - share)));
}

/// Packs the panel's rows from `start` on, at the point's step, or interleaved at it and the next;
/// an odd last step is paired with zeros.
void PackedAPanel::copyStep(Value start, Value target, bool isOddLast) {
  auto type = VectorType::get({width}, getElementTypeOrSelf(scalars.memory.getType()));
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  Value first = point.dimValue(step);
  auto load = [&](int64_t i, int64_t ahead) {
    point.setDim(step, add(first, ahead));
    point.setDim(row, add(start, i));
    return loadRows(type, zero);
  };
  for (int64_t i = 0; i < size; i += width) {
    Value rows = load(i, 0);
    if (stepsAtOnce == 2)
      rows = vector::InterleaveOp::create(builder, loc, rows, isOddLast ? zero : load(i, 1));
    vector::StoreOp::create(builder, loc, rows, memory, add(target, i * stepsAtOnce));
  }
}

void PackedAPanel::emitPrefetch() {
  Value currentRow = point.dimValue(row);
  Value current = point.dimValue(step);
  Value before = times(dividedBy(subtract(current, start), interval), linesAtOnce);
  Value firstStep = add(fetchedStep, before);
  point.setDim(row, fetchedRow);
  for (int64_t i = 0; i < linesAtOnce; ++i) {
    point.setDim(step, add(firstStep, i));
    weft::emitPrefetch(builder, loc, point.getBuffer(scalars.memory)->flat,
                       point.indexValue(scalars.position), CacheLevel::Second);
  }
  point.setDim(row, currentRow);
  point.setDim(step, current);
}

TileOperand PackedAPanel::operand() const {
  MLIRContext *context = builder.getContext();
  return {memory, getAffineDimExpr(step, context) * size + getAffineDimExpr(firstRow, context)};
}

Value PackedAPanel::loadRows(VectorType type, Value zero) {
  Value source = point.getBuffer(scalars.memory)->flat;
  if (rowCount % width == 0) {
    if (rowCount % size != 0)
      point.setDim(row, least(point.dimValue(row), constant(rowCount - width)));
    return vector::LoadOp::create(builder, loc, type, source, point.indexValue(scalars.position));
  }
  Value address = point.indexValue(scalars.position);
  Value left = subtract(constant(rowCount), point.dimValue(row));
  left = arith::MaxSIOp::create(builder, loc, left, constant(0));
  Value mask = vector::CreateMaskOp::create(builder, loc,
                                            VectorType::get({width}, builder.getI1Type()), left);
  return vector::MaskedLoadOp::create(builder, loc, type, source, address, mask, zero);
}
