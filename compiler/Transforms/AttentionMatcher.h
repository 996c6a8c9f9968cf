// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The scores of an attention that a program writes out: a product of queries and keys, scaled and
// masked on its way to the softmax.
#ifndef WEFT_COMPILER_TRANSFORMS_ATTENTIONMATCHER_H
#define WEFT_COMPILER_TRANSFORMS_ATTENTIONMATCHER_H

#include "compiler/Graph/Graph.h"
#include <limits>

namespace weft {

class AttentionMatcher {
public:
  /// What `value`, which only a softmax along its last dim reads, is made of; nothing if that is
  /// no scaled and masked contraction, or if somebody else reads a part.
  static std::optional<AttentionMatcher> behind(mlir::Value value);

  DotGeneralOp product() const { return dot; }
  double factor() const { return scale; }
  /// What stands in place of hidden scores, if there are any.
  double hiddenScore() const { return hidden; }

  /// The mask of an attention whose scores have `type`: a condition that keys are kept, or what is
  /// added to their scaled scores. Null if there is none.
  mlir::Value mask(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type) const;

private:
  /// Keys are hidden where `condition` is not `keeps`.
  struct Choice {
    mlir::Value condition;
    bool keeps;
  };

  bool peel(mlir::Value value);
  bool peelScale(mlir::Value scaled, mlir::Value factor, bool divides);
  bool peelChoice(SelectOp select);

  DotGeneralOp dot;
  double scale = 1, hidden = -std::numeric_limits<double>::infinity();
  llvm::SmallVector<mlir::Value> summands;
  llvm::SmallVector<Choice> choices;
};

/// The number that all elements of a constant are, or nothing.
std::optional<double> splatFloat(mlir::Value value);

/// Whether `reshape` regroups dims ahead of the last two alone.
bool keepsMatrices(ReshapeOp reshape);

} // namespace weft

#endif
