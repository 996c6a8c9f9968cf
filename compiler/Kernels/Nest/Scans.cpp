// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Nest/Scans.h"
#include "compiler/Kernels/VectorMath/CombiningKind.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace weft;

Type weft::accumulatorOf(CumulativeOp op) {
  Type element = getElementTypeOrSelf(op.getType());
  bool drifts = op.getKind() == ReduceKind::sum || op.getKind() == ReduceKind::prod;
  return drifts && element.isF32() ? Float64Type::get(element.getContext()) : element;
}

Value weft::combineRunning(OpBuilder &builder, Location loc, CumulativeOp op, Value carried,
                           Value next) {
  vector::CombiningKind kind = combiningKindOf(op.getKind(), getElementTypeOrSelf(op.getType()));
  // nsz: PyTorch returns the later of two zeros, whatever their signs; distinguishing them would
  // add instructions to the dependency chain.
  auto flags = arith::FastMathFlagsAttr::get(builder.getContext(), arith::FastMathFlags::nsz);
  bool isExtreme = op.getKind() == ReduceKind::max || op.getKind() == ReduceKind::min;
  return vector::makeArithReduction(builder, loc, kind, carried, next,
                                    isExtreme ? flags : arith::FastMathFlagsAttr());
}

void weft::emitScan(ElementEmitter &point, const ScanDemand &scan, const Buffer &line) {
  OpBuilder &builder = point.builder;
  Location loc = point.loc;
  CumulativeOp op = scan.op;
  Type element = getElementTypeOrSelf(op.getType());
  Type carriedType = accumulatorOf(op);
  auto at = [&](Value position) {
    point.setDim(scan.along, position);
    point.forget();
    Value found = point.emitAt(op.getOperand(), scan.operandIndex).parts.front();
    return carriedType == element ? found : arith::ExtFOp::create(builder, loc, carriedType, found);
  };
  auto store = [&](Value sum, Value position) {
    if (carriedType != element)
      sum = arith::TruncFOp::create(builder, loc, element, sum);
    memref::StoreOp::create(builder, loc, sum, line.flat, position);
  };
  auto combine = [&](Value carried, Value next) {
    return combineRunning(builder, loc, op, carried, next);
  };
  // Shortens the dependency chain: only one addition per run depends on the run before.
  constexpr int64_t runLength = 4;
  auto emitRuns = [&](int64_t from, int64_t to, int64_t length, ValueRange carried) {
    return emitLoop(builder, loc, from, to, length, carried, [&](Value position, ValueRange now) {
      SmallVector<Value> positions{position}, sums{at(position)};
      for (int64_t i = 1; i < length; ++i) {
        Value step = arith::ConstantIndexOp::create(builder, loc, i);
        positions.push_back(arith::AddIOp::create(builder, loc, position, step));
        sums.push_back(combine(sums.back(), at(positions.back())));
      }
      for (auto [sum, each] : llvm::zip_equal(sums, positions)) {
        sum = combine(now.front(), sum);
        store(sum, each);
      }
      return SmallVector<Value>{sums.back()};
    });
  };
  // Start from the first element, so that no identity is needed.
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value first = at(zero);
  store(first, zero);
  int64_t extent = point.space.extent(scan.along);
  int64_t whole = 1 + (extent - 1) / runLength * runLength;
  SmallVector<Value> carried = emitRuns(1, whole, runLength, first);
  emitRuns(whole, extent, 1, carried);
  point.forget();
}
