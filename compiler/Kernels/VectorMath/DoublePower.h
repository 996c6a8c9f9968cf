// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Powers of f64 vectors, by double-double logarithms.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_DOUBLEPOWER_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_DOUBLEPOWER_H

#include "compiler/Kernels/VectorMath/VectorPower.h"

namespace weft {

class DoublePower : public VectorPower {
public:
  using VectorPower::VectorPower;

  Value pow(Value x, Value y);
};

} // namespace weft

#endif
