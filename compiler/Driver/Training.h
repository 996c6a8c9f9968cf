// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a graph to the forward or the backward program of training it.
#ifndef WEFT_COMPILER_DRIVER_TRAINING_H
#define WEFT_COMPILER_DRIVER_TRAINING_H

#include "compiler/Autodiff/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// What is made of a graph: itself, a half of the program that trains it, or a whole step.
enum class TrainingPart { None, Forward, Backward, Step };

struct TrainingOptions {
  struct Derivative {
    llvm::SmallVector<int64_t> wrt;     ///< inputs whose gradients are wanted
    llvm::SmallVector<int64_t> results; ///< those that have cotangents
  };
  TrainingPart part = TrainingPart::None;
  /// The half of the graph's program that is trained in turn, in place of the graph: the first
  /// derivative is that of the graph, and the second one is of the half's arguments and results.
  /// A backward keeps only its results that have cotangents.
  std::optional<TrainingHalf> of;
  /// In order: each is of the gradients that the one before it gives, the first of the graph.
  std::vector<Derivative> derivatives;

  double memoryBudget = -1; ///< of weft-partition
  /// The segment of each gradient, empty if the backward is whole, and which segment is made.
  llvm::SmallVector<int64_t> groups;
  int64_t segment = 0;

  /// `role` names the part, as "backward", "backward of forward" where a half is trained in turn,
  /// "segment 1 by 0,1,1" where gradients come in segments, or is empty. Numbers are separated by
  /// commas, derivatives by semicolons. An error says what was expected.
  static llvm::Expected<TrainingOptions> parse(llvm::StringRef role, llvm::StringRef wrt,
                                               llvm::StringRef differentiated,
                                               double memoryBudget = -1);
};

/// Whether `stage` is one that only training has.
bool isTrainingStage(llvm::StringRef stage);

/// Leaves of `module`, a graph, the joint function at stage `joint`, both halves at `partitioned`,
/// otherwise the one of `options.part` as @main.
mlir::LogicalResult makeTraining(mlir::ModuleOp module, TrainingOptions options,
                                 llvm::StringRef stage);

} // namespace weft

#endif
