// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/VectorMath/DoublePower.h"
#include "compiler/Kernels/VectorMath/DoubleExponentials.h"
#include "compiler/Kernels/VectorMath/DoubleLogarithms.h"

using namespace mlir;
using namespace weft;

Value DoublePower::pow(Value x, Value y) {
  Pair log = DoubleLogarithms(b, type).longLog2(absolute(x));
  Value zero = constant(0.0);
  Value isOne = orInt(equal(log.high, zero), equal(y, zero));
  Pair exponent = product(y, log.high);
  exponent.low = fma(y, log.low, exponent.low);
  Value magnitude = DoubleExponentials(b, type).exp2(select(isOne, Pair{zero, zero}, exponent));
  return ofSignedBase(x, y, magnitude);
}
