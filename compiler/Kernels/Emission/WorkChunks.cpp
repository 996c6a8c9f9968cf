// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/WorkChunks.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace weft;

WorkChunks::WorkChunks(OpBuilder &builder, Location loc, Value first, Value end, int64_t unit,
                       Value threads)
    : IndexArithmetic(builder, loc), unit(unit), first(first), size(subtract(end, first)) {
  units = arith::CeilDivUIOp::create(builder, loc, size, constant(unit));
  parts = chooseCount(threads);
}

/// The largest number of chunks that leaves the last one, which is rounded up, half a unit.
Value WorkChunks::chooseCount(Value threads) {
  constexpr int64_t most = 8;
  Type wide = builder.getI64Type();
  Value root = arith::IndexCastOp::create(builder, loc, wide, times(units, 2));
  root = arith::UIToFPOp::create(builder, loc, builder.getF64Type(), root);
  root = math::SqrtOp::create(builder, loc, root);
  root = arith::FPToUIOp::create(builder, loc, wide, root);
  Value count = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), root);
  Value one = constant(1), isAlone = is(arith::CmpIPredicate::eq, threads, one);
  return arith::SelectOp::create(builder, loc, isAlone, one, least(count, constant(most)));
}

/// Of U units in K chunks, U n (2K - n) / K^2 precede chunk n.
Value WorkChunks::begin(Value number) {
  Value left = subtract(parts, number);
  Value scaled = times(times(number, add(parts, left)), units);
  Value before = arith::DivUIOp::create(builder, loc, scaled, times(parts, parts));
  return add(first, least(times(before, unit), size));
}
