// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A topological order of groups that are merged. It bounds the search for cycles, as in Pearce and
// Kelly, "A dynamic topological sort algorithm for directed acyclic graphs" (2006): paths between
// two groups stay within the segment of the order between them, so a merge costs that segment, not
// the whole program.
#ifndef WEFT_COMPILER_TRANSFORMS_DYNAMICTOPOLOGICALORDER_H
#define WEFT_COMPILER_TRANSFORMS_DYNAMICTOPOLOGICALORDER_H

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace weft {

class DynamicTopologicalOrder {
public:
  /// Calls the second argument with each group that consumes the first; repetitions are allowed.
  using ForEachConsumer = llvm::function_ref<void(unsigned, llvm::function_ref<void(unsigned)>)>;

  /// Groups 0 to `size` - 1, in an order that is topological.
  explicit DynamicTopologicalOrder(unsigned size);

  /// Merges `from` into `into`, unless that makes a cycle: false if there is a path between them
  /// through a third group. `from` is empty afterwards.
  bool merge(unsigned into, unsigned from, ForEachConsumer forEachConsumer);

private:
  llvm::SmallDenseSet<unsigned> findConsumers(unsigned group, unsigned end,
                                              ForEachConsumer forEachConsumer) const;

  llvm::SmallVector<unsigned> order; ///< groups by position
  llvm::SmallVector<unsigned> place; ///< the inverse of `order`
};

} // namespace weft

#endif
