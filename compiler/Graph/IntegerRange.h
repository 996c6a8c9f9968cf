// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is known about the elements of an integer tensor from the index arithmetic that
// made it: enough to decide the comparisons in masks and wrapped indices.
#ifndef WEFT_COMPILER_GRAPH_INTEGERRANGE_H
#define WEFT_COMPILER_GRAPH_INTEGERRANGE_H

#include "compiler/Graph/Graph.h"

#include <optional>

namespace weft {

/// The answer to `predicate` where all elements of `lhs` and `rhs` give the same.
std::optional<bool> decide(ComparePredicate predicate, mlir::Value lhs, mlir::Value rhs);

} // namespace weft

#endif
