// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/StridedPrefetch.h"
#include "compiler/Kernels/Emission/Prefetch.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace weft;

void StridedPrefetch::emit() {
  next.visit([&](Value first) {
    for (int64_t i : llvm::seq(steps)) {
      next.moveTo(add(first, i));
      emitRunPrefetch(builder, loc, point.getBuffer(roles.vectors.memory)->flat,
                      point.indexValue(roles.vectors.position), lanes, CacheLevel::Second);
    }
  });
}
