// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An entry function as fusion sees it: nodes that are computed once, and cheap ops between them
// that each kernel which uses them recomputes. There must be no dead code.
#ifndef WEFT_COMPILER_TRANSFORMS_FUSIONGRAPH_H
#define WEFT_COMPILER_TRANSFORMS_FUSIONGRAPH_H

#include "compiler/Graph/Graph.h"
#include "compiler/Graph/IterationStructure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include <memory>

namespace weft {

/// The ops of a kernel for a given set of nodes.
struct KernelBody {
  /// The nodes and the recomputed ops they use, in topological order.
  llvm::SmallVector<mlir::Operation *> ops;
  /// Values defined outside.
  llvm::SmallSetVector<mlir::Value, 8> inputs;
  /// The nodes and those recomputed ops that depend on a node.
  llvm::SmallPtrSet<mlir::Operation *, 16> dependent;
  /// Values of nodes with uses outside.
  llvm::SmallVector<mlir::Value> results;
};

/// Whether the order of elements changes, other than by tiling.
bool movesElements(RelayoutOp relayout);

class FusionGraph {
public:
  /// Fails, with a diagnostic, at a pure op without an iteration structure.
  static mlir::FailureOr<FusionGraph> build(mlir::func::FuncOp entry);

  /// Everything that is not recomputed, in program order: computations, ops with effects, and the
  /// terminator.
  llvm::ArrayRef<mlir::Operation *> getNodes() const { return nodes; }

  /// Null for ops with effects.
  const IterationStructure *getStructure(mlir::Operation *op) const;
  unsigned getPosition(mlir::Operation *op) const { return positions.lookup(op); }
  bool isRepeated(mlir::Operation *op) const { return repeated.contains(op); }
  bool isMaterialized(mlir::Operation *op) const { return materialized.contains(op); }
  bool isGathered(mlir::Operation *op) const { return gathered.contains(op); }
  bool isCompared(mlir::Operation *op) const { return compared.contains(op); }
  bool isRowOfRuns(mlir::Operation *op) const { return rowsOfRuns.contains(op); }

  /// The call of a primitive function that an op is of, an array of the function's name and the
  /// number of the call; null for most.
  mlir::ArrayAttr getUnit(mlir::Operation *op) const { return units.lookup(op); }

  /// Nodes that a node depends on, directly or through recomputed ops.
  llvm::ArrayRef<mlir::Operation *> getProducers(mlir::Operation *node) const;
  /// The reverse; also the next op with effects after one.
  llvm::ArrayRef<mlir::Operation *> getConsumers(mlir::Operation *node) const;

  KernelBody getBody(llvm::ArrayRef<mlir::Operation *> nodes) const;

private:
  mlir::LogicalResult describe(mlir::Block &block);
  void materialize(mlir::Block &block);
  void materializeBlockedOperand(mlir::Value operand);
  void materializeJoinedRows(AttentionOp attention);
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
  llvm::DenseMap<mlir::Operation *, mlir::ArrayAttr> units;
  llvm::SmallVector<mlir::Operation *> nodes;
  /// Ops whose result is stored in memory.
  llvm::DenseSet<mlir::Operation *> materialized;
  /// Materialized ops whose rows reductions would read element by element.
  llvm::DenseSet<mlir::Operation *> gathered;
  /// Ops whose results meet elements of themselves.
  llvm::DenseSet<mlir::Operation *> compared;
  /// Materialized ops with runs or concatenations along rows, used by other kernels.
  llvm::DenseSet<mlir::Operation *> rowsOfRuns;
  /// Ops that kernels recompute, with the arithmetic per element that costs.
  llvm::DenseMap<mlir::Operation *, unsigned> repeated;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *, 4>> producers, consumers;
};

} // namespace weft

#endif
