// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The layouts in which values are saved. Forward and backward are compiled separately, and saved
// values pass between them without being moved, so that both have to agree on a layout.
#ifndef WEFT_COMPILER_AUTODIFF_SAVEDLAYOUTS_H
#define WEFT_COMPILER_AUTODIFF_SAVEDLAYOUTS_H

#include "compiler/Graph/Graph.h"
#include "llvm/ADT/DenseSet.h"

namespace weft {

/// The images of a block: results of convolutions, and what elementwise ops, norms, windows and
/// other ops that keep the layout make of them. In both halves they are laid out with their
/// channels last, as convolutions write and read them.
class SavedLayouts {
public:
  explicit SavedLayouts(mlir::Block &block);
  /// The layout in which `value` is saved; null for row-major.
  LayoutAttr of(mlir::Value value) const;

private:
  llvm::DenseSet<mlir::Value> images;
};

} // namespace weft

#endif
