// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The mask of an attention, copied for one block of keys at a time to where the tiles of
// scores read it as they read their operands.
#ifndef WEFT_COMPILER_KERNELS_ATTENTION_ATTENTIONMASK_H
#define WEFT_COMPILER_KERNELS_ATTENTION_ATTENTIONMASK_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/KernelFunction.h"
#include <optional>

namespace weft {

class AttentionMask {
public:
  /// `index` is that of the scores, (batch..., query, key); the loop variables `query` and
  /// `key` stand in it. `point` is at a block of queries, with the queries in its lanes.
  AttentionMask(AttentionOp op, ElementEmitter &point, llvm::ArrayRef<mlir::AffineExpr> index,
                unsigned query, unsigned key);

  bool exists() const { return static_cast<bool>(mask); }
  /// Whether hidden scores are replaced: a mask of i1 is copied as 0 where it keeps a key, and as
  /// the hidden score, or -inf, where not.
  bool replaces() const { return boolean && hiddenScore; }
  /// Whether it is added to the scores.
  bool adds() const { return exists() && !replaces(); }
  /// Reserve scratch for `keys` keys.
  void reserve(KernelFunction &kernel, mlir::VectorType type, int64_t keys, int64_t lanes);

  /// Copy that of `width` keys from the point's key on, of which the first `valid` count, to
  /// row `slot` of the scratch and behind it.
  void copy(mlir::Value slot, int64_t valid);
  /// That of the key in row `slot`, for the lanes of vector `group` of the block.
  mlir::Value load(mlir::Value slot, int64_t group);

private:
  mlir::Value emit();
  mlir::Value address(mlir::Value slot, mlir::Value lane);

  mlir::Value mask;
  ElementEmitter &point;
  llvm::SmallVector<mlir::AffineExpr> index;
  unsigned query, key;
  bool boolean = false;
  std::optional<double> hiddenScore;
  bool shared = false; ///< by all queries of the block
  mlir::VectorType type;
  mlir::Value scratch; ///< [key] if shared, else [key][lane]
  int64_t lanes = 1;
};

} // namespace weft

#endif
