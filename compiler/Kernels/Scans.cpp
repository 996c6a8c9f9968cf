// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Scans.h"
#include "compiler/Kernels/CombiningKind.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace weft;

/// One chain of float32 additions drifts: they are carried in float64, as PyTorch's are.
static Type accumulator(ReduceKind kind, Type element) {
  bool drifts = kind == ReduceKind::sum || kind == ReduceKind::prod;
  return drifts && element.isF32() ? Float64Type::get(element.getContext()) : element;
}

void weft::emitScan(PointEmitter &point, const ScanDemand &scan, const Buffer &line) {
  OpBuilder &builder = point.builder;
  Location loc = point.loc;
  CumulativeOp op = scan.op;
  Type element = getElementTypeOrSelf(op.getType());
  vector::CombiningKind kind = combiningKindOf(op.getKind(), element);
  Type carriedType = accumulator(op.getKind(), element);
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
  // The first element starts the sum: no identity is needed.
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value first = at(zero);
  store(first, zero);
  emitLoop(builder, loc, 1, point.space.extent(scan.along), 1, ValueRange{first},
           [&](Value position, ValueRange carried) {
             Value next =
                 vector::makeArithReduction(builder, loc, kind, carried.front(), at(position));
             store(next, position);
             return SmallVector<Value>{next};
           });
  point.forget();
}
