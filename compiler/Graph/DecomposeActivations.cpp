// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The meaning of gelu and silu in primitive ops.
#include "compiler/Graph/ComputeBuilder.h"
#include "compiler/Graph/Constraints.h"

#include <cmath>

using namespace mlir;
using namespace weft;

using Replacement = FailureOr<SmallVector<Value>>;

/// 1 + erf(x / sqrt(2))
static Value exactBell(ComputeBuilder &b, Value x) {
  Value scaled = b.create<MulOp>(x, b.splat(x, M_SQRT1_2));
  return b.create<AddOp>(b.create<ErfOp>(scaled), b.splat(x, 1.0));
}

/// 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))
static Value tanhBell(ComputeBuilder &b, Value x) {
  Value cube = b.create<MulOp>(b.create<MulOp>(x, x), x);
  Value sum = b.create<AddOp>(x, b.create<MulOp>(cube, b.splat(x, 0.044715)));
  Value scaled = b.create<MulOp>(sum, b.splat(x, M_SQRT2 * M_2_SQRTPI * 0.5));
  return b.create<AddOp>(b.create<TanhOp>(scaled), b.splat(x, 1.0));
}

Replacement GeluOp::decompose(OpBuilder &builder) {
  Type element = getType().getElementType();
  ComputeBuilder b(builder, getLoc(), element);
  Value x = b.enter(getOperand());
  Value bell = getKind() == GeluKind::erf ? exactBell(b, x) : tanhBell(b, x);
  Value half = b.create<MulOp>(x, b.splat(x, 0.5));
  return SmallVector<Value>{b.leave(b.create<MulOp>(half, bell), element)};
}

Replacement SiluOp::decompose(OpBuilder &builder) {
  Type element = getType().getElementType();
  ComputeBuilder b(builder, getLoc(), element);
  Value x = b.enter(getOperand());
  return SmallVector<Value>{b.leave(b.create<MulOp>(x, b.create<SigmoidOp>(x)), element)};
}
