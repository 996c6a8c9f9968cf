// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An entry function as fusion sees it: nodes that are computed once, and cheap ops between
// them that every kernel which needs them repeats. Ops must be free of dead code.
#ifndef WEFT_COMPILER_TRANSFORMS_FUSIONGRAPH_H
#define WEFT_COMPILER_TRANSFORMS_FUSIONGRAPH_H

#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/IterationStructure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include <memory>

namespace weft {

/// The ops that a kernel made of some nodes would consist of.
struct KernelBody {
  /// The nodes and the repeated ops that they read, each after what it reads.
  llvm::SmallVector<mlir::Operation *> ops;
  /// Values that come from outside.
  llvm::SmallSetVector<mlir::Value, 8> inputs;
  /// The nodes and those repeated ops that depend on one of them.
  llvm::SmallPtrSet<mlir::Operation *, 16> dependent;
  /// Values of nodes that others need.
  llvm::SmallVector<mlir::Value> results;
};

/// Whether elements, not blocks of tokens, change their order.
bool movesElements(RelayoutOp relayout);

class FusionGraph {
public:
  /// Fails with a diagnostic at an op that is pure and has no iteration structure.
  static mlir::FailureOr<FusionGraph> build(mlir::func::FuncOp entry);

  /// Everything that is not repeated, in program order: computations, ops with effects,
  /// and the terminator.
  llvm::ArrayRef<mlir::Operation *> getNodes() const { return nodes; }

  /// Null for ops with effects.
  const IterationStructure *getStructure(mlir::Operation *op) const;
  unsigned getPosition(mlir::Operation *op) const { return positions.lookup(op); }
  bool isRepeated(mlir::Operation *op) const { return repeated.contains(op); }
  bool isMaterialized(mlir::Operation *op) const { return materialized.contains(op); }
  bool isGathered(mlir::Operation *op) const { return gathered.contains(op); }
  bool isRowOfRuns(mlir::Operation *op) const { return rowsOfRuns.contains(op); }

  /// Nodes whose values a node needs, directly or through repeated ops.
  llvm::ArrayRef<mlir::Operation *> getProducers(mlir::Operation *node) const;
  /// The reverse, and the next op with effects after one.
  llvm::ArrayRef<mlir::Operation *> getConsumers(mlir::Operation *node) const;

  KernelBody getBody(llvm::ArrayRef<mlir::Operation *> nodes) const;

private:
  mlir::LogicalResult describe(mlir::Block &block);
  void materialize(mlir::Block &block);
  void materializeBlockedOperand(mlir::Value operand);
  void materializeViewsOfComposite(mlir::Operation *op);
  bool returnsToOrder(RelayoutOp relayout) const;
  void materializeRelayoutOfRows(ReduceOp reduce);
  void materializeRuns(BroadcastInDimOp broadcast);
  void materializeTurned(RelayoutOp relayout);
  void chooseRepeated(mlir::Block &block);
  bool isWorthRepeating(mlir::Operation *op) const;
  bool choosesOnly(mlir::Operation *op) const;
  int64_t countElementsRead(mlir::Operation *op) const;
  void connect(mlir::Block &block);
  bool escapes(mlir::Value value, const llvm::SmallPtrSetImpl<mlir::Operation *> &kernel) const;

  llvm::DenseMap<mlir::Operation *, std::unique_ptr<IterationStructure>> structures;
  llvm::DenseMap<mlir::Operation *, unsigned> positions;
  llvm::SmallVector<mlir::Operation *> nodes;
  /// Ops whose result must lie in memory.
  llvm::DenseSet<mlir::Operation *> materialized;
  /// Those of them whose rows reductions would read element by element.
  llvm::DenseSet<mlir::Operation *> gathered;
  /// Those of them that repeat elements along a row, or join rows, for readers in other kernels.
  llvm::DenseSet<mlir::Operation *> rowsOfRuns;
  /// Ops that kernels repeat, with the arithmetic that one repetition costs per element.
  llvm::DenseMap<mlir::Operation *, unsigned> repeated;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *, 4>> producers, consumers;
};

} // namespace weft

#endif
