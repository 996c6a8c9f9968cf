// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// In which layout a value is saved: forward and backward are compiled apart, and what is saved
// passes between them without being moved.
#ifndef WEFT_COMPILER_AUTODIFF_SAVEDLAYOUTS_H
#define WEFT_COMPILER_AUTODIFF_SAVEDLAYOUTS_H

#include "compiler/Graph/Graph.h"
#include "llvm/ADT/DenseSet.h"

namespace weft {

/// Values of a block that convolutions compute or pass on, as far as elementwise ops, norms and
/// windows keep them images: in both halves they lie with their channels last, as convolutions
/// write and read them.
class SavedLayouts {
public:
  explicit SavedLayouts(mlir::Block &block);
  /// Null: row-major.
  LayoutAttr of(mlir::Value value) const;

private:
  llvm::DenseSet<mlir::Value> images;
};

} // namespace weft

#endif
