// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors of the reference.
#ifndef WEFT_TOOLS_CHECK_KERNELS_TENSOR_H
#define WEFT_TOOLS_CHECK_KERNELS_TENSOR_H

#include "Number.h"
#include "mlir/IR/BuiltinTypes.h"
#include <memory>
#include <vector>

namespace weft::check {

/// A tensor in row-major order of its shape, whatever layout its type names. A scalar has rank 0.
struct Tensor {
  llvm::SmallVector<int64_t> shape;
  mlir::Type element;
  std::vector<Number> numbers;

  /// Of undetermined numbers. `type`: a ranked tensor with static dims, or a scalar.
  explicit Tensor(mlir::Type type);

  int64_t rank() const { return int64_t(shape.size()); }
  int64_t size() const { return int64_t(numbers.size()); }
  /// Distances of neighbours in `numbers` along each dim.
  llvm::SmallVector<int64_t> strides() const;
  Number &at(llvm::ArrayRef<int64_t> index);
  const Number &at(llvm::ArrayRef<int64_t> index) const {
    return const_cast<Tensor *>(this)->at(index);
  }
};

/// Values are shared, and never written once they are values of the program.
using TensorRef = std::shared_ptr<const Tensor>;

/// Calls `visit` with each index below `shape`, the last dim fastest.
void forEachIndex(llvm::ArrayRef<int64_t> shape,
                  llvm::function_ref<void(llvm::ArrayRef<int64_t>)> visit);

} // namespace weft::check

#endif
