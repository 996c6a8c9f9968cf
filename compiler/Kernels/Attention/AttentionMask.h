// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The mask of an attention, packed for one block of keys at a time into the layout in which the
// score tiles read it.
#ifndef WEFT_COMPILER_KERNELS_ATTENTION_ATTENTIONMASK_H
#define WEFT_COMPILER_KERNELS_ATTENTION_ATTENTIONMASK_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/KernelFunction.h"
#include <optional>

namespace weft {

class AttentionMask {
public:
  /// `index`: that of the scores, (batch..., query, key), with loop variables `query` and `key`.
  /// `point` is at a block of queries, with the queries in its lanes.
  AttentionMask(AttentionOp op, ElementEmitter &point, llvm::ArrayRef<mlir::AffineExpr> index,
                unsigned query, unsigned key);

  bool exists() const { return static_cast<bool>(mask); }
  /// Whether the scores of masked keys are replaced: an i1 mask is packed as 0 for kept keys, and
  /// as the hidden score, or -inf, for others.
  bool replaces() const { return boolean && hiddenScore; }
  /// Whether the packed mask is added to the scores.
  bool adds() const { return exists() && !replaces(); }
  /// Reserve scratch for `keys` keys.
  void reserve(KernelFunction &kernel, mlir::VectorType type, int64_t keys, int64_t lanes);

  /// Packs the mask of `width` keys from the point's key on, of which the first `valid` exist, to
  /// rows from `slot` on.
  void copy(mlir::Value slot, int64_t valid);
  /// The mask of the key in row `slot`, for vector `group` of the block's queries.
  mlir::Value load(mlir::Value slot, int64_t group);
  /// Where the mask replaces scores: `score` if `ofMask` is zero, otherwise `ofMask`, even if the
  /// score is NaN.
  mlir::Value replaceIn(mlir::Value score, mlir::Value ofMask);

private:
  mlir::Value emit();
  mlir::Value address(mlir::Value slot, mlir::Value lane);

  mlir::Value mask;
  ElementEmitter &point;
  llvm::SmallVector<mlir::AffineExpr> index;
  unsigned query, key;
  bool boolean = false;
  std::optional<double> hiddenScore;
  bool shared = false; ///< the same for all queries of the block
  mlir::VectorType type;
  mlir::Value scratch; ///< [key] if shared, else [key][lane]
  int64_t lanes = 1;
};

} // namespace weft

#endif
