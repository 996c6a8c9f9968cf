// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Attention/SoftmaxExponentials.h"
#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Kernels/VectorMath/VectorMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;
using namespace weft;

Value SoftmaxExponentials::splat(double value) { return emitSplat(builder, loc, type, value); }

Value SoftmaxExponentials::isHidden(Value maximum) {
  Value lowest = splat(-std::numeric_limits<double>::infinity());
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, maximum, lowest);
}

Value SoftmaxExponentials::shiftOf(Value maximum) {
  Value none = isHidden(maximum);
  Value shift = arith::SelectOp::create(builder, loc, none, splat(0.0), maximum);
  return isRaw ? arith::MulFOp::create(builder, loc, shift, splat(-unit)).getResult() : shift;
}

Value SoftmaxExponentials::of(Value score, Value shift) {
  if (!isRaw)
    return ofDifference(arith::SubFOp::create(builder, loc, score, shift));
  return emitPowerOfTwo(builder, loc,
                        vector::FMAOp::create(builder, loc, score, splat(unit), shift));
}

Value SoftmaxExponentials::ofDifference(Value difference) {
  if (type.getElementType().isF64())
    return math::ExpOp::create(builder, loc, difference);
  Value inTwos = arith::MulFOp::create(builder, loc, difference, splat(std::numbers::log2e));
  return emitPowerOfTwo(builder, loc, inTwos);
}

Value SoftmaxExponentials::scaleBetween(Value maximum, Value shift) {
  // Computed from the same rounded shifts as the exponentials; exact ones would be inconsistent
  // with them for large scores.
  Value earlier = shiftOf(maximum);
  Value scale =
      isRaw ? emitPowerOfTwo(builder, loc, arith::SubFOp::create(builder, loc, shift, earlier))
            : ofDifference(arith::SubFOp::create(builder, loc, earlier, shift));
  return arith::SelectOp::create(builder, loc, isHidden(maximum), splat(0.0), scale);
}
