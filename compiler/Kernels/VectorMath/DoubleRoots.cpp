// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/VectorMath/DoubleRoots.h"
#include <limits>

using namespace mlir;
using namespace weft;

Value DoubleRoots::rsqrt(Value x) {
  // Scale small numbers, so that the residual of the root does not underflow.
  Value isSmall = less(x, constant(0x1p-900)), one = constant(1.0);
  Value scaled = select(isSmall, mul(x, constant(0x1p200)), x);
  Value root = math::SqrtOp::create(b, scaled), inverse = div(one, root);
  // Correct for the rounding errors of the root and of the quotient, to first order.
  Value ofRoot = fma(negate(root), root, scaled), ofQuotient = fma(negate(root), inverse, one);
  Value halved = mul(mul(ofRoot, inverse), mul(inverse, constant(0.5)));
  Value exact = fma(inverse, sub(ofQuotient, halved), inverse);
  Value infinity = constant(std::numeric_limits<double>::infinity());
  Value isUsual = both(less(constant(0.0), x), less(x, infinity));
  return mul(select(isUsual, exact, inverse), select(isSmall, constant(0x1p100), one));
}
