// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Nest/LaneScans.h"
#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Kernels/Emission/RegisterTranspose.h"
#include "compiler/Kernels/Nest/Scans.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weft;

LaneScans::LaneScans(ElementEmitter &point, ArrayRef<ScanDemand> scans, ScanDims dims,
                     VectorBlock vectors, std::function<void()> store)
    : point(point), scans(scans), dims(dims), vectors(vectors), width(vectors.width),
      store(std::move(store)) {
  // Operands are read at the index of the result.
  for (ScanDemand &scan : this->scans)
    scan.operandIndex = scan.index;
}

std::optional<Emitted> LaneScans::find(Value tensor) const {
  for (auto [scan, value] : llvm::zip(scans, found))
    if (scan.op->getResult(0) == tensor)
      return value;
  return std::nullopt;
}

Value LaneScans::combine(CumulativeOp op, Value carried, Value value) {
  auto type = cast<VectorType>(value.getType());
  Type wide = accumulatorOf(op);
  if (wide != type.getElementType())
    value = arith::ExtFOp::create(point.builder, point.loc, type.clone(wide), value);
  if (!carried)
    return value;
  return combineRunning(point.builder, point.loc, op, carried, value);
}

Value LaneScans::rounded(CumulativeOp op, Value carried) {
  auto type = cast<VectorType>(carried.getType());
  Type element = getElementTypeOrSelf(op.getType());
  return type.getElementType() == element
             ? carried
             : arith::TruncFOp::create(point.builder, point.loc, type.clone(element), carried);
}

void LaneScans::emit(Value base, int64_t extent) {
  if (dims.squares) {
    emitSquares(base, extent);
    return;
  }
  emitLaneLoop(point, dims.lane, base, extent, vectors, {}, [&](Value, ValueRange) {
    Value first = arith::ConstantIndexOp::create(point.builder, point.loc, 0);
    Values carried = step(first, {});
    emitLoop(point.builder, point.loc, 1, point.space.extent(dims.along), 1, carried,
             [&](Value position, ValueRange now) { return step(position, now); });
    found.clear();
    return SmallVector<Value>();
  });
}

/// One step of the scans in all lanes; returns the carried values.
LaneScans::Values LaneScans::step(Value position, ValueRange carried) {
  moveTo(dims.along, position, 0);
  found.clear();
  Values next;
  int64_t groups = point.getLanes().groups;
  for (auto [number, scan] : llvm::enumerate(scans)) {
    Emitted value{{}, false};
    Emitted operand = point.emitAt(scan.op.getOperand(), scan.operandIndex);
    for (auto [group, part] : llvm::enumerate(point.asVectors(operand))) {
      Value before = carried.empty() ? Value() : carried[number * groups + group];
      next.push_back(combine(scan.op, before, part));
      value.parts.push_back(rounded(scan.op, next.back()));
    }
    found.push_back(value);
  }
  store();
  return next;
}

void LaneScans::emitSquares(Value base, int64_t lines) {
  OpBuilder &builder = point.builder;
  int64_t extent = point.space.extent(dims.along), whole = extent / width * width;
  Value first = arith::ConstantIndexOp::create(builder, point.loc, 0);
  Values carried = square(base, lines, first, width, {});
  carried = emitLoop(
      builder, point.loc, width, whole, width, carried,
      [&](Value position, ValueRange now) { return square(base, lines, position, width, now); });
  if (whole < extent)
    square(base, lines, arith::ConstantIndexOp::create(builder, point.loc, whole), extent - whole,
           carried);
  point.setLanes(Lanes());
  found.clear();
}

/// `count` positions of each row: loaded along the rows, transposed so that each row has a lane,
/// scanned, transposed back and stored.
LaneScans::Values LaneScans::square(Value base, int64_t lines, Value first, int64_t count,
                                    ValueRange carried) {
  OpBuilder &builder = point.builder;
  Location loc = point.loc;
  point.setDim(dims.along, first);
  point.setLanes({static_cast<int64_t>(dims.along), width, 1, count});
  Values next;
  SmallVector<Values> results;
  auto at = [&](int64_t line) {
    moveTo(dims.lane, base, line);
    found.clear();
    for (const Values &result : results)
      found.push_back({{result[line]}, false});
  };
  for (auto [number, scan] : llvm::enumerate(scans)) {
    Values rows;
    for (int64_t line = 0; line < lines; ++line) {
      at(line);
      Emitted operand = point.emitAt(scan.op.getOperand(), scan.operandIndex);
      rows.push_back(point.asVectors(operand).front());
    }
    rows.resize(width, rows.front());
    Values columns = transposeVectors(builder, loc, rows);
    Value sum = carried.empty() ? Value() : carried[number];
    for (Value &column : MutableArrayRef(columns).take_front(count)) {
      sum = combine(scan.op, sum, column);
      column = rounded(scan.op, sum);
    }
    next.push_back(sum);
    results.push_back(transposeVectors(builder, loc, columns));
  }
  for (int64_t line = 0; line < lines; ++line) {
    at(line);
    store();
  }
  return next;
}

void LaneScans::moveTo(unsigned dim, Value from, int64_t by) {
  if (by != 0) {
    Value step = arith::ConstantIndexOp::create(point.builder, point.loc, by);
    from = arith::AddIOp::create(point.builder, point.loc, from, step);
  }
  point.setDim(dim, from);
  point.forget();
}
