// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Philox2x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011: each round multiplies one word of the counter, and mixes the product's high half with
// the other word and the key, which goes on by a Weyl sequence.
#include "compiler/Lowering/Philox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

static constexpr uint32_t philoxMultiplier = 0xD256D193, philoxWeyl = 0x9E3779B9;
static constexpr int rounds = 10;

Value weft::emitPhilox(OpBuilder &b, Location loc, Value low, Value high, Value key) {
  Type narrow = b.getI32Type(), wide = b.getI64Type();
  Value multiplier = arith::ConstantIntOp::create(b, loc, wide, int64_t(philoxMultiplier));
  Value half = arith::ConstantIntOp::create(b, loc, wide, 32);
  Value weyl = arith::ConstantIntOp::create(b, loc, narrow, int32_t(philoxWeyl));
  for (int round = 0; round < rounds; ++round) {
    if (round > 0)
      key = arith::AddIOp::create(b, loc, key, weyl);
    Value factor = arith::ExtUIOp::create(b, loc, wide, low);
    Value product = arith::MulIOp::create(b, loc, factor, multiplier);
    Value upper = arith::ShRUIOp::create(b, loc, product, half);
    Value mixed =
        arith::XOrIOp::create(b, loc, arith::TruncIOp::create(b, loc, narrow, upper), key);
    low = arith::XOrIOp::create(b, loc, mixed, high);
    high = arith::TruncIOp::create(b, loc, narrow, product);
  }
  return low;
}
