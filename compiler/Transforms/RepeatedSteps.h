// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a repeated sequence of ops would be as a scan: where each operand of a step comes from, and
// where its results go.
#ifndef WEFT_COMPILER_TRANSFORMS_REPEATEDSTEPS_H
#define WEFT_COMPILER_TRANSFORMS_REPEATEDSTEPS_H

#include "compiler/Graph/Graph.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

namespace weft {

/// A part of a tensor for each step, as `type`.
struct ElementOfSequence {
  SliceOp first;               ///< the part of the first step
  int64_t dim = 0;             ///< along which the parts follow each other
  int64_t advance = 0;         ///< from one to the next; negative towards the front
  mlir::RankedTensorType type; ///< of a part, reshaped

  int64_t size() { return first.getType().getDimSize(dim); }
};

/// Splat constants of one type that differ from step to step.
struct ConstantOfStep {
  mlir::RankedTensorType type;
  llvm::SmallVector<mlir::Attribute> values; ///< of each step
};

/// A value for each step that no step computes: drawn numbers, or an argument of its own.
struct GatheredValues {
  mlir::RankedTensorType type;
  llvm::SmallVector<mlir::Value> values; ///< of each step
};

/// Result `result` of op `op` of `delay` steps before; `init` for the first step. What is older
/// than one step was carried value `newer` in the step before.
struct CarriedValue {
  unsigned op, result, delay, newer;
  mlir::Value init;

  bool operator==(const CarriedValue &other) const {
    return op == other.op && result == other.result && delay == other.delay &&
           newer == other.newer && init == other.init;
  }
};

/// Where an operand comes from. `number`: of the op of the same step, of the carried value, of the
/// sequence, of the constants or of the gathered values; `result`: of the op. `value`: an
/// invariant, or an equal constant.
struct OperandSource {
  enum Kind { SameStep, Carried, Invariant, Constant, Element, StepConstant, Gathered } kind;
  unsigned number = 0, result = 0;
  mlir::Value value;
};

/// A concat that stacks a result of all steps: operands from `first` on, as they are or reshaped.
struct StackedUse {
  unsigned op, result;
  mlir::Operation *concat;
  unsigned first;
  bool isReversed; ///< the last step comes first
};

/// Whether the op draws numbers, or has PyTorch compute others, from constants alone: where it
/// stands among steps does not matter to them.
bool isDraw(mlir::Operation *op);

class RepeatedSteps {
public:
  /// `ops`: of `steps` steps, as many each, in program order.
  RepeatedSteps(llvm::ArrayRef<mlir::Operation *> ops, unsigned steps)
      : ops(ops), steps(steps), period(ops.size() / steps) {
    for (auto [position, op] : llvm::enumerate(ops))
      positions[op] = position;
  }

  /// The longest run of steps whose operands come from the same places, as far as two steps that
  /// follow each other tell: the first and how many.
  std::pair<unsigned, unsigned> longestRun() const;

  /// Empty if the steps are a scan; otherwise why they are not. `readSingly`: what single steps
  /// compute may be read after them.
  std::string analyze(bool readSingly = false);

  llvm::ArrayRef<mlir::Operation *> ops;
  unsigned steps, period;
  llvm::SmallVector<llvm::SmallVector<OperandSource>> sources; ///< of each op of a step
  llvm::DenseMap<unsigned, unsigned> elementOps; ///< slices that are elements of a sequence
  llvm::SmallVector<CarriedValue> carried;
  llvm::SmallVector<ElementOfSequence> elements;
  llvm::SmallVector<ConstantOfStep> constants;
  llvm::SmallVector<GatheredValues> gathered;
  llvm::SetVector<mlir::Value> invariants;
  llvm::SmallVector<StackedUse> stacked;
  /// Results whose last value is read after the steps, and those of which others are, too.
  llvm::SmallVector<std::pair<unsigned, unsigned>> last, single;

  bool contains(mlir::Operation *op) const { return positions.contains(op); }
  mlir::Operation *at(unsigned step, unsigned op) const { return ops[step * period + op]; }

private:
  struct Place {
    unsigned step, op, result;
  };
  std::optional<Place> placeOf(mlir::Value value) const;
  std::string classify(unsigned op, unsigned operand);
  std::string classifyUses(unsigned op, unsigned result, bool readSingly);
  bool isLater(llvm::ArrayRef<mlir::Value> values, OperandSource &source);
  bool isAlike(unsigned step, unsigned op, unsigned operand) const;
  bool isConstant(llvm::ArrayRef<mlir::Value> values, OperandSource &source);
  bool isElement(llvm::ArrayRef<mlir::Value> values, OperandSource &source);
  bool isGathered(llvm::ArrayRef<mlir::Value> values, OperandSource &source);
  bool sliceVaries(unsigned op) const;
  unsigned enter(ElementOfSequence element);

  llvm::DenseMap<mlir::Operation *, unsigned> positions;
};

} // namespace weft

#endif
