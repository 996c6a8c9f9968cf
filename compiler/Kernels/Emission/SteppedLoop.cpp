// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/SteppedLoop.h"
#include "compiler/Kernels/Emission/KernelFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weft;

SmallVector<Value>
weft::emitSteps(OpBuilder &builder, Location loc, Value count, int64_t total, int64_t step,
                Carried carried,
                llvm::function_ref<SmallVector<Value>(Value, int64_t, Carried)> body) {
  auto loop = [&](auto low, auto high, int64_t size, ValueRange values) {
    return emitLoop(builder, loc, low, high, step, values, [&](Value first, ValueRange now) {
      return body(first, size, SmallVector<Value>(now));
    });
  };
  if (std::optional<int64_t> known = getConstantIntValue(count)) {
    int64_t whole = *known / step * step;
    return loop(whole, *known, *known - whole, loop(int64_t(0), whole, step, carried));
  }
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  if (total % step == 0)
    return loop(zero, count, step, carried);
  Value size = arith::ConstantIndexOp::create(builder, loc, step);
  Value rest = arith::RemUIOp::create(builder, loc, count, size);
  Value whole = arith::SubIOp::create(builder, loc, count, rest);
  return loop(whole, count, total % step, loop(zero, whole, step, carried));
}
