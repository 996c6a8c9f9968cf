// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matches the scores of a decomposed attention: a product of queries and keys, scaled and masked
// before the softmax.
#ifndef WEFT_COMPILER_TRANSFORMS_ATTENTIONMATCHER_H
#define WEFT_COMPILER_TRANSFORMS_ATTENTIONMATCHER_H

#include "compiler/Graph/Graph.h"
#include <limits>

namespace weft {

class AttentionMatcher {
public:
  /// Matches `value`, which only a softmax along its last dim uses; nothing if it is not a scaled
  /// and masked contraction, or if a part has other uses.
  static std::optional<AttentionMatcher> behind(mlir::Value value);

  DotGeneralOp product() const { return dot; }
  double factor() const { return scale; }
  /// The value that replaces masked scores, if any are.
  double hiddenScore() const { return hidden; }

  /// The mask of an attention with scores of `type`: a condition for keys that are kept, or a term
  /// added to their scaled scores. Null if there is none.
  mlir::Value mask(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type) const;

private:
  /// Keys are masked where `condition` is not `keeps`.
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

/// The element of a splat constant, or nothing.
std::optional<double> splatFloat(mlir::Value value);

/// Whether `reshape` only regroups dims before the last two.
bool keepsMatrices(ReshapeOp reshape);

} // namespace weft

#endif
