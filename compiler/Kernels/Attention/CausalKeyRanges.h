// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The keys that a block of queries sees, in runs of neighbours.
//
// Of a causal attention, the keys ahead of the block of queries are seen by all of it. The
// others come in runs of one vector: run i is seen by vector i in part, which alone needs
// comparing, by those behind it in full, and is not computed for those ahead of it.
#ifndef WEFT_COMPILER_KERNELS_ATTENTION_CAUSALKEYRANGES_H
#define WEFT_COMPILER_KERNELS_ATTENTION_CAUSALKEYRANGES_H

#include "compiler/Kernels/Attention/AttentionSchedule.h"
#include "compiler/Kernels/Emission/SteppedLoop.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

/// Keys of one tile of memory, beside one another in scratch from row `slot` on. The vectors
/// of queries ahead of `firstGroup` do not see them; if `diagonal`, it sees no more than its
/// lanes' number of them.
struct KeyRun {
  mlir::Value tile, from, count, slot;
  int64_t firstGroup = 0;
  bool diagonal = false;
};

using RunBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(const KeyRun &, Carried)>;
/// Calls its body for every run of a block of keys, with values that are carried along.
using KeyBlock = llvm::function_ref<llvm::SmallVector<mlir::Value>(Carried, RunBody)>;

/// `body` on those of the carried values, `groups` for each of several rows, whose queries see
/// `run`.
llvm::SmallVector<mlir::Value>
onSeeing(const KeyRun &run, int64_t groups, Carried carried,
         llvm::function_ref<llvm::SmallVector<mlir::Value>(Carried)> body);

class CausalKeyRanges : private IndexArithmetic {
public:
  /// For a block of `groups` vectors of queries. `firstQuery` is the number of the first, null
  /// unless the attention is causal; `queries` of them in all attend to `keys` keys.
  CausalKeyRanges(mlir::OpBuilder &builder, mlir::Location loc, const AttentionSchedule &schedule,
                  int64_t groups, int64_t queries, int64_t keys, mlir::Value firstQuery);

  /// How many tiles hold keys that all queries of the block see, and the end of those keys.
  mlir::Value tiles() const { return tileCount; }
  mlir::Value end() const { return seenByAll; }

  /// Those keys of tiles [low, high).
  llvm::SmallVector<mlir::Value> ofTiles(mlir::Value low, mlir::Value high, Carried carried,
                                         RunBody body);
  /// Of a causal attention, the keys beside the queries; in scratch from row `slot` on.
  llvm::SmallVector<mlir::Value> ofDiagonal(mlir::Value slot, Carried carried, RunBody body);

private:
  const AttentionSchedule &schedule;
  int64_t groups, queries, keys;
  mlir::Value firstQuery, seenByAll, tileCount;
};

} // namespace weft

#endif
