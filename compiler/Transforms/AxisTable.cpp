// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Unites and splits axes. Lists are matched from the innermost axis outwards, since reshapes
// preserve inner factors.
#include "compiler/Transforms/AxisTable.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace weft;

AxisList AxisTable::create(int64_t size) {
  if (size == 1)
    return {};
  axes.push_back({size, {}});
  return {unsigned(axes.size() - 1)};
}

AxisList AxisTable::resolve(ArrayRef<unsigned> list) const {
  AxisList resolved;
  for (unsigned axis : list) {
    if (axes[axis].successors.empty())
      resolved.push_back(axis);
    else
      llvm::append_range(resolved, resolve(axes[axis].successors));
  }
  return resolved;
}

LogicalResult AxisTable::unite(ArrayRef<unsigned> lhs, ArrayRef<unsigned> rhs) {
  AxisList left(lhs), right(rhs);
  while (true) {
    left = resolve(left);
    right = resolve(right);
    if (left.empty() || right.empty())
      return success(left.empty() && right.empty());
    unsigned a = left.pop_back_val(), b = right.pop_back_val();
    if (a == b)
      continue;
    if (size(a) == size(b)) {
      axes[a].successors = {b};
      continue;
    }
    AxisList &rest = size(a) > size(b) ? left : right;
    unsigned large = size(a) > size(b) ? a : b, small = size(a) > size(b) ? b : a;
    if (size(small) == 0 || size(large) % size(small) != 0)
      return failure();
    unsigned outer = create(size(large) / size(small)).front();
    axes[large].successors = {outer, small};
    rest.push_back(outer);
  }
}

int64_t AxisTable::size(ArrayRef<unsigned> list) const {
  int64_t product = 1;
  for (unsigned axis : list)
    product *= size(axis);
  return product;
}
