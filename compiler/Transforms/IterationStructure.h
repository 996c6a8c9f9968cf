// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What loops an op stands for and how its tensors follow them. Fusion reads this and
// nothing else about an op, so that a new op fuses as soon as its loops are described.
#ifndef WEFT_COMPILER_TRANSFORMS_ITERATIONSTRUCTURE_H
#define WEFT_COMPILER_TRANSFORMS_ITERATIONSTRUCTURE_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace weft {

/// How the loops of an op run. A scan carries a running value, and yields every one of them.
enum class LoopKind { Parallel, Reduction, Scan };

/// How the index along one dim of a tensor follows from the loops.
enum class DimAccessKind {
  Exact,    ///< the row-major combination of `loops`; index 0 without loops
  Shifted,  ///< an affine function of at most one loop, possibly out of bounds (pad)
  Window,   ///< a sum of an outer and a window loop
  Computed, ///< depends on data, or is no affine function of the loops
};

struct DimAccess {
  DimAccessKind kind = DimAccessKind::Exact;
  llvm::SmallVector<unsigned, 2> loops;
  /// Shifted only: the index does not rise by one with the loop.
  bool skips = false;
};

/// One entry per dim of a tensor.
using TensorAccess = llvm::SmallVector<DimAccess, 4>;

/// The classes of loop nests that fusion distinguishes, all derived from the structure.
enum class IterationKind {
  View,        ///< at most one operand, no arithmetic: costs nothing to do twice
  Map,         ///< one result element per iteration
  Reduction,   ///< whole dims of one operand are combined
  Window,      ///< sliding windows and scans
  Contraction, ///< sums of products of several operands
  Composite,   ///< a nest of nests with a kernel of its own
  Isolated,    ///< data says where results go: a kernel of its own
};

struct IterationStructure {
  llvm::SmallVector<int64_t, 6> sizes;
  llvm::SmallVector<LoopKind, 6> loops;
  llvm::SmallVector<TensorAccess, 3> operands;
  llvm::SmallVector<TensorAccess, 1> results;
  IterationKind kind = IterationKind::Map;
  /// Per operand: read in blocks that must lie in memory (the factors of a contraction).
  llvm::SmallVector<bool, 3> blocked;

  /// Every tensor is indexed by all the loops in the same order: elementwise ops.
  bool isIdentity() const;
  /// Every dim of every tensor is an exact combination of loops.
  bool isExact() const;
  /// Exact, and row-major order of every tensor is the same: reshapes that split and merge.
  bool keepsElementOrder() const;
  /// A view of a rectangular block of its operand, nothing repeated and nothing skipped.
  bool isBlockView() const;
};

/// The structure of `op`, or none when it has effects or is not known to the graph dialect.
/// Shapes must be static.
std::optional<IterationStructure> getIterationStructure(mlir::Operation *op);

} // namespace weft

#endif
