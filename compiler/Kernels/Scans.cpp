// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Scans.h"
#include "compiler/Kernels/CombiningKind.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace weft;

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
