// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trigonometric functions of f64 vectors that need double-double sums and quotients to be within 1
// ULP; sine and cosine are in VectorTrigonometry.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_DOUBLETRIGONOMETRY_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_DOUBLETRIGONOMETRY_H

#include "compiler/Kernels/VectorMath/VectorTrigonometry.h"

namespace weft {

class DoubleTrigonometry : public VectorTrigonometry {
public:
  using VectorTrigonometry::VectorTrigonometry;

  Value tan(Value x, mlir::Operation *function);
  Value asin(Value x);
  Value acos(Value x);
  Value atan(Value x);
  Value atan2(Value y, Value x);

private:
  Value tanOfShort(Value x);
  /// asin(r), 0 <= r <= 1/2, where r is |x| if that is at most 1/2 (`isNear`), else sqrt((1 - |x|)
  /// / 2).
  struct Halved {
    Value isNear;
    Pair angle;
  };
  Halved halvedAsin(Value x);
  /// `eighths` * pi / 4 - x.
  Pair angleLess(int32_t eighths, Pair x);
  /// atan(rise / run), 0 <= rise <= run.
  Pair atanOfRatio(Value rise, Value run);
};

} // namespace weft

#endif
