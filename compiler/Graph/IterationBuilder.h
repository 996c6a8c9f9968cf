// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collects what an op says of its loops. Parallel dims of size 1 have no loop.
#ifndef WEFT_COMPILER_GRAPH_ITERATIONBUILDER_H
#define WEFT_COMPILER_GRAPH_ITERATIONBUILDER_H

#include "compiler/Graph/IterationStructure.h"
#include "compiler/Graph/OpStructure.h"

namespace weft {

/// The loops and accesses of one op of static shapes.
class IterationBuilder {
public:
  explicit IterationBuilder(mlir::Operation *op);

  /// An exact access by a new loop of `size`.
  DimAccess loop(int64_t size, LoopKind kind = LoopKind::Parallel);

  /// One parallel loop per dim of result `number`, which it accesses exactly.
  TensorAccess &loopsOfResult(unsigned number = 0);
  /// The same, and all operands are accessed as the result is.
  void elementwise();

  TensorAccess &operand(unsigned number) { return structure.operands[number]; }
  TensorAccess &result(unsigned number = 0) { return structure.results[number]; }
  /// Operand `number` is read in blocks: a contraction.
  void block(unsigned number) { structure.blocked[number] = true; }
  /// Data determines where results are stored, or which operand's part is read.
  void isolate() { isolated = true; }

  IterationStructure finish();

private:
  bool isView() const;

  mlir::Operation *op;
  IterationStructure structure;
  bool isolated = false;
};

/// `access` as an affine function of its loop.
DimAccess shifted(DimAccess access, bool skips = false);
/// The sum of an outer loop and one over a window.
DimAccess window(const DimAccess &outer, const DimAccess &inner);

} // namespace weft

#endif
