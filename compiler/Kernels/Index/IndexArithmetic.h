// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arithmetic on SSA index values at one insertion point, as a base class of emitters.
#ifndef WEFT_COMPILER_KERNELS_INDEX_INDEXARITHMETIC_H
#define WEFT_COMPILER_KERNELS_INDEX_INDEXARITHMETIC_H

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace weft {

class IndexArithmetic {
protected:
  IndexArithmetic(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }
  mlir::Value add(mlir::Value a, mlir::Value b) {
    return mlir::arith::AddIOp::create(builder, loc, a, b);
  }
  mlir::Value add(mlir::Value a, int64_t b) { return b == 0 ? a : add(a, constant(b)); }
  mlir::Value subtract(mlir::Value a, mlir::Value b) {
    return mlir::arith::SubIOp::create(builder, loc, a, b);
  }
  mlir::Value times(mlir::Value a, int64_t b) {
    return mlir::arith::MulIOp::create(builder, loc, a, constant(b));
  }
  mlir::Value times(mlir::Value a, mlir::Value b) {
    return mlir::arith::MulIOp::create(builder, loc, a, b);
  }
  mlir::Value dividedBy(mlir::Value a, int64_t b) {
    return mlir::arith::DivUIOp::create(builder, loc, a, constant(b));
  }
  mlir::Value remainderOf(mlir::Value a, int64_t b) {
    return mlir::arith::RemUIOp::create(builder, loc, a, constant(b));
  }
  mlir::Value least(mlir::Value a, mlir::Value b) {
    return mlir::arith::MinUIOp::create(builder, loc, a, b);
  }
  mlir::Value is(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b) {
    return mlir::arith::CmpIOp::create(builder, loc, predicate, a, b);
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace weft

#endif
