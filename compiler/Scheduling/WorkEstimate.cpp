// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Scheduling/WorkEstimate.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Emission/Epilogue.h"

using namespace mlir;
using namespace weft;

/// Elements read of an argument: if only slices of it are used, those of the slices.
static int64_t elementsRead(Value value) {
  int64_t all = tensorType(value).getNumElements(), read = 0;
  for (Operation *user : value.getUsers()) {
    if (isa<tensor::ExtractSliceOp>(user))
      read += tensorType(user->getResult(0)).getNumElements();
    else if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(user))
      read += elementsRead(user->getResult(0));
    else
      return all;
  }
  return std::min(read, all);
}

/// Parallel execution costs a barrier, and a working set spread over the caches of several cores.
static constexpr int64_t smallWork = 64 << 10;

WorkEstimate::WorkEstimate(func::FuncOp source) {
  for (Value root : rootsOf(source))
    elements += tensorType(root).getNumElements();
  for (BlockArgument argument : source.getArguments())
    elements = std::max(elements, std::min(elementsRead(argument), smallWork));
  // Cost of a transcendental function in elements moved; measured on LSTM cells.
  constexpr int64_t elementsOfFunction = 6;
  source.walk([&](linalg::GenericOp generic) {
    if (isTranscendental(generic))
      elements += elementsOfFunction * ShapedType::getNumElements(generic.getStaticLoopRanges());
  });
}

bool WorkEstimate::isSmall() const { return elements < smallWork / 4; }

int64_t WorkEstimate::leastPieces(int64_t cells) const {
  constexpr int64_t enoughElements = 16 << 10;
  return KernelFunction::piecesOf(cells, elements, enoughElements);
}
