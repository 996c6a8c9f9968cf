// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace weft::check;

Tensor::Tensor(mlir::Type type) : element(mlir::getElementTypeOrSelf(type)) {
  if (auto ranked = mlir::dyn_cast<mlir::RankedTensorType>(type))
    shape.assign(ranked.getShape().begin(), ranked.getShape().end());
  int64_t size = 1;
  for (int64_t extent : shape)
    size *= extent;
  numbers.assign(size, Number{0, 0, undetermined});
}

llvm::SmallVector<int64_t> Tensor::strides() const {
  llvm::SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = rank() - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

Number &Tensor::at(llvm::ArrayRef<int64_t> index) {
  int64_t offset = 0;
  for (auto [position, extent] : llvm::zip_equal(index, shape))
    offset = offset * extent + position;
  return numbers[offset];
}

void weft::check::forEachIndex(llvm::ArrayRef<int64_t> shape,
                               llvm::function_ref<void(llvm::ArrayRef<int64_t>)> visit) {
  if (llvm::is_contained(shape, 0))
    return;
  llvm::SmallVector<int64_t> index(shape.size(), 0);
  while (true) {
    visit(index);
    int64_t dim = int64_t(shape.size()) - 1;
    while (dim >= 0 && ++index[dim] == shape[dim])
      index[dim--] = 0;
    if (dim < 0)
      return;
  }
}
