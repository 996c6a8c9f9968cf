// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions between angles and ratios, of f64 vectors, whose sums and quotients must keep more than
// one number holds, to be within one ULP; sine and cosine are those of VectorTrigonometry.
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
  /// asin(root), 0 <= root <= 1/2, where `lost` is to be added to it: |x| where that is up to a
  /// half, and sqrt((1 - |x|) / 2) where it is not.
  struct Halved {
    Value isNear;
    Pair angle;
  };
  Halved halvedAsin(Value x);
  /// `eighths` * pi / 4 - x
  Pair angleLess(int32_t eighths, Pair x);
  /// atan(rise / run), 0 <= rise <= run.
  Pair atanOfRatio(Value rise, Value run);
};

} // namespace weft

#endif
