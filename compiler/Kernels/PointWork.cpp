// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/PointWork.h"
#include "compiler/Graph/Constraints.h"

using namespace mlir;
using namespace weft;

PointWork::PointWork(const KernelFunction &kernel) {
  // Dividing work has a price: a barrier, and the caches of two cores.
  constexpr int64_t smallWork = 64 << 10;
  for (Value root : kernel.roots)
    elements += tensorType(root).getNumElements();
  func::FuncOp source = kernel.source;
  for (Type type : source.getArgumentTypes())
    elements = std::max(
        elements, std::min<int64_t>(cast<RankedTensorType>(type).getNumElements(), smallWork));
  serial = elements < smallWork / 4;
}

int64_t PointWork::leastPieces(int64_t cells) const {
  constexpr int64_t enoughElements = 16 << 10;
  return KernelFunction::piecesOf(cells, elements, enoughElements);
}
