// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A topological order of groups that merge. It bounds the search for cycles, as in Pearce and
// Kelly, "A dynamic topological sort algorithm for directed acyclic graphs" (2006): what lies
// outside the two groups' stretch of the order is on no path between them, so that a merge
// costs what lies between them, not the whole program.
#ifndef WEFT_COMPILER_TRANSFORMS_DYNAMICTOPOLOGICALORDER_H
#define WEFT_COMPILER_TRANSFORMS_DYNAMICTOPOLOGICALORDER_H

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace weft {

class DynamicTopologicalOrder {
public:
  /// Calls the second argument with each group that reads from the first, any number of times.
  using ForEachConsumer = llvm::function_ref<void(unsigned, llvm::function_ref<void(unsigned)>)>;

  /// Groups 0, 1, ... `size` - 1 in this order, which is topological.
  explicit DynamicTopologicalOrder(unsigned size);

  /// Makes `from` part of `into`, unless that would make a cycle: false when a path leads from
  /// one to the other through a third group. `from` is empty from now on.
  bool merge(unsigned into, unsigned from, ForEachConsumer forEachConsumer);

private:
  llvm::SmallDenseSet<unsigned> findConsumers(unsigned group, unsigned end,
                                              ForEachConsumer forEachConsumer) const;

  llvm::SmallVector<unsigned> order; ///< groups by place
  llvm::SmallVector<unsigned> place; ///< its inverse
};

} // namespace weft

#endif
