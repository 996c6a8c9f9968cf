// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The axes of a kernel's domain during inference: a union-find whose members may also be split,
// since a reshape traverses one dim as several.
#ifndef WEFT_COMPILER_TRANSFORMS_AXISTABLE_H
#define WEFT_COMPILER_TRANSFORMS_AXISTABLE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"

namespace weft {

/// Axes from outermost to innermost, as the table numbered them.
using AxisList = llvm::SmallVector<unsigned, 4>;

class AxisTable {
public:
  /// A new axis; size 1 gives none.
  AxisList create(int64_t size);

  /// `axes` resolved to their current representatives: united ones to one number, split ones to
  /// their parts.
  AxisList resolve(llvm::ArrayRef<unsigned> axes) const;

  /// Makes both lists the same axes, splitting where sizes divide. Fails, possibly half done, if
  /// they do not.
  llvm::LogicalResult unite(llvm::ArrayRef<unsigned> lhs, llvm::ArrayRef<unsigned> rhs);

  int64_t size(unsigned axis) const { return axes[axis].size; }
  int64_t size(llvm::ArrayRef<unsigned> list) const;

private:
  struct Axis {
    int64_t size;
    /// The axis that this one was united with, or its parts.
    AxisList successors;
  };
  llvm::SmallVector<Axis> axes;
};

} // namespace weft

#endif
