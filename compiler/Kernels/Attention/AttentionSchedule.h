// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The plain numbers that steer the attention emitter, and how they are chosen: a function of
// shapes and the machine alone.
#ifndef WEFT_COMPILER_KERNELS_ATTENTION_ATTENTIONSCHEDULE_H
#define WEFT_COMPILER_KERNELS_ATTENTION_ATTENTIONSCHEDULE_H

#include "compiler/Target/TargetInfo.h"
#include <optional>

namespace weft {

/// What an attention looks like to its schedule.
struct AttentionProblem {
  unsigned elementBits = 32;
  int64_t queries = 1, keys = 1;
  int64_t features = 1, valueFeatures = 1;
  int64_t queryTile = 0, keyTile = 0; ///< blocks of tokens in memory, or 0 where there are none
};

struct AttentionSchedule {
  int64_t width = 16;   ///< queries in one vector
  int64_t groups = 4;   ///< vectors of a block of queries
  int64_t rows = 4;     ///< keys of a tile of scores, features of a tile of outputs
  int64_t keyTile = 64; ///< keys beside one another in memory, or those taken as if they were
  int64_t keyTiles = 1; ///< of them, whose scores wait in scratch together
  bool online = false;  ///< a running maximum and sum: the keys come in several blocks

  /// Nothing when blocks of queries in memory are no whole vectors.
  static std::optional<AttentionSchedule> choose(const AttentionProblem &problem,
                                                 const TargetInfo &target);

  /// Rows of a tile that is only `groups` vectors wide.
  int64_t rowsOf(int64_t groups, const TargetInfo &target) const;
  int64_t lanes() const { return groups * width; }
  int64_t keyBlock() const { return keyTile * keyTiles; }
};

} // namespace weft

#endif
