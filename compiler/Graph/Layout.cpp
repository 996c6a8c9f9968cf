// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The layout attribute: its checks and the physical shape it stands for.
#include "compiler/Graph/Graph.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

LogicalResult LayoutAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> order, int64_t tileDim, int64_t tileSize) {
  int64_t rank = order.size();
  llvm::SmallVector<bool> seen(rank, false);
  for (int64_t dim : order) {
    if (dim < 0 || dim >= rank || seen[dim])
      return emitError() << "expected order to be a permutation of 0 to " << rank - 1;
    seen[dim] = true;
  }
  if (tileDim < -1 || tileDim >= rank)
    return emitError() << "expected tile dim below rank (" << rank << "), found " << tileDim;
  if ((tileDim == -1) != (tileSize == 0) || tileSize < 0)
    return emitError() << "expected a positive tile size with a tile dim, found " << tileSize;
  return success();
}

LogicalResult LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (getOrder().size() != shape.size())
    return emitError() << "expected a layout of rank " << shape.size() << ", found rank "
                       << getOrder().size();
  return success();
}

llvm::SmallVector<int64_t> LayoutAttr::getPhysicalShape(llvm::ArrayRef<int64_t> shape) const {
  llvm::SmallVector<int64_t> physical;
  for (int64_t dim : getOrder())
    physical.push_back(dim == getTileDim() ? llvm::divideCeil(shape[dim], getTileSize())
                                           : shape[dim]);
  if (hasTile())
    physical.push_back(getTileSize());
  return physical;
}

bool weft::isTiled(LayoutAttr layout) { return layout && layout.hasTile(); }

LayoutAttr weft::layoutOf(RankedTensorType type) {
  return dyn_cast_or_null<LayoutAttr>(type.getEncoding());
}

RankedTensorType weft::withLayout(RankedTensorType type, LayoutAttr layout) {
  return RankedTensorType::get(type.getShape(), type.getElementType(), layout);
}

RankedTensorType weft::physicalType(RankedTensorType type) {
  LayoutAttr layout = layoutOf(type);
  if (!layout)
    return RankedTensorType::get(type.getShape(), type.getElementType());
  return RankedTensorType::get(layout.getPhysicalShape(type.getShape()), type.getElementType());
}

llvm::SmallVector<int64_t> weft::stridesInMemory(RankedTensorType type) {
  LayoutAttr layout = layoutOf(type);
  llvm::SmallVector<int64_t> physical = computeStrides(physicalType(type).getShape());
  if (!layout)
    return physical;
  llvm::SmallVector<int64_t> strides(type.getRank());
  for (auto [place, dim] : llvm::enumerate(layout.getOrder()))
    strides[dim] = physical[place];
  return strides;
}

bool weft::equalUpToLayout(TypeRange lhs, TypeRange rhs) {
  return llvm::equal(lhs, rhs, [](Type a, Type b) {
    auto left = dyn_cast<RankedTensorType>(a), right = dyn_cast<RankedTensorType>(b);
    return left && right && withLayout(left, {}) == withLayout(right, {});
  });
}
