// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters of the attention emitter and how they are chosen, as a function of shapes and the
// target alone.
#ifndef WEFT_COMPILER_KERNELS_ATTENTION_ATTENTIONSCHEDULE_H
#define WEFT_COMPILER_KERNELS_ATTENTION_ATTENTIONSCHEDULE_H

#include "compiler/Target/TargetInfo.h"
#include <optional>

namespace weft {

/// An attention as its schedule sees it.
struct AttentionProblem {
  unsigned elementBits = 32;
  int64_t queries = 1, keys = 1;
  int64_t features = 1, valueFeatures = 1;
  int64_t queryTile = 0, keyTile = 0; ///< tokens of a block in memory, or 0 if not blocked
};

struct AttentionSchedule {
  int64_t width = 16;   ///< queries of a vector
  int64_t groups = 4;   ///< vectors of a block of queries
  int64_t rows = 4;     ///< keys of a tile of scores; features of a tile of outputs
  int64_t keyTile = 64; ///< keys of a block in memory, or of a nominal one
  int64_t keyTiles = 1; ///< blocks in memory per block of keys
  bool online = false;  ///< online softmax: several blocks of keys

  /// Nothing if blocks of queries in memory are not whole vectors.
  static std::optional<AttentionSchedule> choose(const AttentionProblem &problem,
                                                 const TargetInfo &target);

  /// Rows of a register tile that is `groups` vectors wide.
  int64_t rowsOf(int64_t groups, const TargetInfo &target) const;
  int64_t lanes() const { return groups * width; }
  int64_t keyBlock() const { return keyTile * keyTiles; }
};

} // namespace weft

#endif
