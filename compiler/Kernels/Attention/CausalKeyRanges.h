// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The keys visible to a block of queries, as contiguous ranges. For a causal mask, all queries see
// the keys before the block. The rest are ranges of one vector: range i is on the diagonal of query
// vector i, which alone needs a comparison, is fully visible to later vectors, and is skipped for
// earlier ones.
#ifndef WEFT_COMPILER_KERNELS_ATTENTION_CAUSALKEYRANGES_H
#define WEFT_COMPILER_KERNELS_ATTENTION_CAUSALKEYRANGES_H

#include "compiler/Kernels/Attention/AttentionSchedule.h"
#include "compiler/Kernels/Emission/SteppedLoop.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

/// Contiguous keys of one block in memory, in scratch from row `slot` on. Query vectors before
/// `firstGroup` do not see them; if `diagonal`, lane i of that vector sees only keys up to i.
struct KeyRun {
  mlir::Value tile, from, count, slot;
  int64_t firstGroup = 0;
  bool diagonal = false;
};

using RunBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(const KeyRun &, Carried)>;
/// Calls its body for every range of a block of keys, with loop-carried values.
using KeyBlock = llvm::function_ref<llvm::SmallVector<mlir::Value>(Carried, RunBody)>;

/// Runs `body` on the carried values (`groups` for each of several rows) of the query vectors that
/// see `run`.
llvm::SmallVector<mlir::Value>
onSeeing(const KeyRun &run, int64_t groups, Carried carried,
         llvm::function_ref<llvm::SmallVector<mlir::Value>(Carried)> body);

/// A vector of scores with those of lanes before lane number `place` set to -inf.
mlir::Value hideLater(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value scores,
                      mlir::Value place);

class CausalKeyRanges : private IndexArithmetic {
public:
  /// For a block of `groups` query vectors. `firstQuery`: number of the block's first query, null
  /// unless causal; `queries` and `keys`: total counts; `keysEnd`: the end of the keys that count,
  /// where others are hidden by a mask, or null. Blocks in memory are whole all the same.
  CausalKeyRanges(mlir::OpBuilder &builder, mlir::Location loc, const AttentionSchedule &schedule,
                  int64_t groups, int64_t queries, int64_t keys, mlir::Value firstQuery,
                  mlir::Value keysEnd);

  /// Number of blocks in memory with keys that all queries see, and the end of those keys.
  mlir::Value tiles() const { return tileCount; }
  mlir::Value end() const { return seenByAll; }

  /// The keys seen by all, of blocks [low, high).
  llvm::SmallVector<mlir::Value> ofTiles(mlir::Value low, mlir::Value high, Carried carried,
                                         RunBody body);
  /// The keys on the diagonal of a causal attention; in scratch from row `slot` on.
  llvm::SmallVector<mlir::Value> ofDiagonal(mlir::Value slot, Carried carried, RunBody body);

private:
  const AttentionSchedule &schedule;
  int64_t groups, queries, keys;
  mlir::Value firstQuery, seenByAll, tileCount;
  bool mayEndInTile; ///< the last tile of keys may have fewer that are seen
};

} // namespace weft

#endif
