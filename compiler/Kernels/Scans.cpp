// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Scans.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

static vector::CombiningKind combiningKindOf(ReduceKind kind, Type element) {
  bool floating = isa<FloatType>(element);
  switch (kind) {
  case ReduceKind::sum:
    return vector::CombiningKind::ADD;
  case ReduceKind::prod:
    return vector::CombiningKind::MUL;
  case ReduceKind::max:
    return floating ? vector::CombiningKind::MAXIMUMF : vector::CombiningKind::MAXSI;
  case ReduceKind::min:
    return floating ? vector::CombiningKind::MINIMUMF : vector::CombiningKind::MINSI;
  case ReduceKind::any:
    return vector::CombiningKind::OR;
  case ReduceKind::all:
    return vector::CombiningKind::AND;
  }
  llvm_unreachable("unknown reduction");
}

void weft::emitScan(PointEmitter &point, const ScanDemand &scan, const Buffer &line) {
  OpBuilder &builder = point.builder;
  Location loc = point.loc;
  CumulativeOp op = scan.op;
  Type element = getElementTypeOrSelf(op.getType());
  vector::CombiningKind kind = combiningKindOf(op.getKind(), element);
  auto at = [&](Value position) {
    point.setDim(scan.along, position);
    point.forget();
    return point.emitAt(op.getOperand(), scan.operandIndex).parts.front();
  };
  // The first element starts the sum: no identity is needed.
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value first = at(zero);
  memref::StoreOp::create(builder, loc, first, line.flat, zero);
  emitLoop(builder, loc, 1, point.space.extent(scan.along), 1, ValueRange{first},
           [&](Value position, ValueRange carried) {
             Value next =
                 vector::makeArithReduction(builder, loc, kind, carried.front(), at(position));
             memref::StoreOp::create(builder, loc, next, line.flat, position);
             return SmallVector<Value>{next};
           });
  point.forget();
}
