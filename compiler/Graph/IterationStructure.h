// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loops of an op and how its tensors are indexed by them. Fusion uses nothing else about an op,
// so a new op can be fused as soon as its loops are described.
#ifndef WEFT_COMPILER_GRAPH_ITERATIONSTRUCTURE_H
#define WEFT_COMPILER_GRAPH_ITERATIONSTRUCTURE_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace weft {

/// Kinds of loops. A scan carries a value, and yields it at each iteration.
enum class LoopKind { Parallel, Reduction, Scan };

/// How the index along one dim of a tensor depends on the loops.
enum class DimAccessKind {
  Exact,    ///< the row-major combination of `loops`; index 0 without loops
  Shifted,  ///< an affine function of at most one loop, possibly out of bounds (pad)
  Window,   ///< a sum of an outer and a window loop
  Computed, ///< depends on data, or is not an affine function of the loops
};

struct DimAccess {
  DimAccessKind kind = DimAccessKind::Exact;
  llvm::SmallVector<unsigned, 2> loops;
  /// Shifted only: the index does not increase by one with the loop.
  bool skips = false;
};

/// One entry per dim of a tensor.
using TensorAccess = llvm::SmallVector<DimAccess, 4>;

/// The kinds of loop nests that fusion distinguishes, all derived from the structure.
enum class IterationKind {
  View,        ///< at most one operand, no arithmetic: free to recompute
  Map,         ///< one result element per iteration
  Reduction,   ///< whole dims of one operand are combined
  Window,      ///< sliding windows and scans
  Contraction, ///< sums of products of several operands
  Composite,   ///< several nests, with a kernel of its own
  Isolated,    ///< data determines where results are stored: a kernel of its own
};

struct IterationStructure {
  llvm::SmallVector<int64_t, 6> sizes;
  llvm::SmallVector<LoopKind, 6> loops;
  llvm::SmallVector<TensorAccess, 3> operands;
  llvm::SmallVector<TensorAccess, 1> results;
  IterationKind kind = IterationKind::Map;
  /// Per operand: whether it is read in blocks and has to be in memory (contractions).
  llvm::SmallVector<bool, 3> blocked;

  /// All tensors are indexed by all loops in the same order: elementwise ops.
  bool isIdentity() const;
  /// All dims of all tensors are exact combinations of loops.
  bool isExact() const;
  /// Exact, with the same row-major order for all tensors: reshapes.
  bool keepsElementOrder() const;
  /// A view of a rectangular block of its operand, nothing repeated and nothing skipped.
  bool isBlockView() const;
};

/// The structure of `op`, or none if it has effects or is not an op of the graph dialect. Shapes
/// must be static.
std::optional<IterationStructure> getIterationStructure(mlir::Operation *op);

} // namespace weft

#endif
