// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The axes of a kernel's domain while they are being found: a union-find whose members
// may also be split, since a reshape walks one dim as several.
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

  /// `axes` as they are known now: united ones by one number, split ones by their parts.
  AxisList resolve(llvm::ArrayRef<unsigned> axes) const;

  /// Make both lists the same axes, splitting where sizes divide. Fails, possibly half
  /// done, when they do not.
  llvm::LogicalResult unite(llvm::ArrayRef<unsigned> lhs, llvm::ArrayRef<unsigned> rhs);

  int64_t size(unsigned axis) const { return axes[axis].size; }
  int64_t size(llvm::ArrayRef<unsigned> list) const;

private:
  struct Axis {
    int64_t size;
    /// What this axis became: one other axis, or its parts.
    AxisList successors;
  };
  llvm::SmallVector<Axis> axes;
};

} // namespace weft

#endif
