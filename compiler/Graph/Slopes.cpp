// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The verifier of values with given derivatives, and what they take.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/OpCost.h"
#include "compiler/Graph/OpStructure.h"

using namespace mlir;
using namespace weft;

LogicalResult WithSlopesOp::verify() {
  auto error = [&] { return emitOpError(); };
  if (getInputs().size() != getSlopes().size())
    return error() << "expected " << getInputs().size() << " slopes, found " << getSlopes().size();
  for (auto [input, slope] : llvm::zip_equal(getInputs(), getSlopes())) {
    RankedTensorType type = tensorType(input);
    if (failed(checkDims("dims", getDims(), type.getRank(), error)))
      return failure();
    if (tensorType(slope) != type)
      return error() << "expected a slope of type " << type << ", found " << tensorType(slope);
    SmallVector<int64_t> shape;
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      if (!llvm::is_contained(getDims(), static_cast<int64_t>(dim)))
        shape.push_back(size);
    if (tensorType(getValue()) != RankedTensorType::get(shape, type.getElementType()))
      return error() << "expected a value of type "
                     << RankedTensorType::get(shape, type.getElementType()) << ", found "
                     << tensorType(getValue());
  }
  return success();
}

void weft::structureSlopes(MLIRContext *context) {
  takes<OpWork{OpWork::Kind::Nothing}, WithSlopesOp>(context);
}
