// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/StoreTarget.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace weft;

Index StoreTarget::rootIndex(ArrayRef<AffineExpr> index) const {
  Index result;
  for (auto [expr, start] : llvm::zip_equal(index, offset))
    result.push_back(start == 0 ? expr : expr + start);
  return result;
}

/// The parts of a root that slices of its own rank make up, one behind the other, in memory
/// that nobody wrote before; nothing where it is something else.
static SmallVector<StoreTarget> partsOf(Value root, unsigned number) {
  auto type = cast<RankedTensorType>(root.getType());
  SmallVector<StoreTarget> parts;
  int64_t elements = 0;
  while (auto insert = root.getDefiningOp<tensor::InsertSliceOp>()) {
    if (insert.getDroppedDims().any() || !insert.hasUnitStride())
      return {};
    elements += insert.getSourceType().getNumElements();
    parts.push_back({insert.getSource(), number, llvm::to_vector(insert.getStaticOffsets())});
    root = insert.getDest();
  }
  // As many elements as the whole: the slices of a concatenation do not overlap.
  if (!root.getDefiningOp<tensor::EmptyOp>() || elements != type.getNumElements())
    return {};
  return parts;
}

SmallVector<StoreTarget> weft::storeTargets(const KernelFunction &kernel) {
  SmallVector<StoreTarget> targets;
  for (auto [number, root] : llvm::enumerate(kernel.roots)) {
    SmallVector<StoreTarget> parts = partsOf(root, number);
    int64_t rank = cast<RankedTensorType>(root.getType()).getRank();
    if (parts.empty())
      parts.push_back({root, unsigned(number), SmallVector<int64_t>(rank, 0)});
    llvm::append_range(targets, parts);
  }
  return targets;
}
