// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters of the attention emitter. compiler/Scheduling chooses them.
#ifndef WEFT_COMPILER_KERNELS_ATTENTION_ATTENTIONSCHEDULE_H
#define WEFT_COMPILER_KERNELS_ATTENTION_ATTENTIONSCHEDULE_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/ScheduleFields.h"
#include "compiler/Target/TargetInfo.h"

namespace weft {

struct KernelFunction;

/// An attention as its schedule sees it.
struct AttentionProblem {
  unsigned elementBits = 32;
  int64_t queries = 1, keys = 1;
  int64_t features = 1, valueFeatures = 1;
  int64_t queryTile = 0, keyTile = 0; ///< tokens of a block in memory, or 0 if not blocked
  int64_t batches = 1;
  bool causal = false;

  static AttentionProblem of(AttentionOp op);
  int64_t flops() const;
};

struct AttentionSchedule {
  int64_t width = 16;    ///< queries of a vector
  int64_t groups = 4;    ///< vectors of a block of queries
  int64_t rows = 4;      ///< keys of a tile of scores; features of a tile of outputs
  int64_t keyTile = 64;  ///< keys of a block in memory, or of a nominal one
  int64_t keyBlock = 64; ///< keys whose scores stay in L1: a multiple of keyTile
  bool online = false;   ///< online softmax: several blocks of keys
  int64_t claim = 1;     ///< least blocks of queries that a thread claims

  template <typename Self, typename Visit> static void visitFields(Self &schedule, Visit &&visit) {
    using Field = ScheduleField;
    visit(Field::count("rows"), schedule.rows);
    visit(Field::count("groups"), schedule.groups);
    visit(Field::count("lanes"), schedule.width);
    visit(Field::count("key_tile"), schedule.keyTile);
    visit(Field::count("key_block"), schedule.keyBlock);
    visit(Field::flag("online"), schedule.online);
    visit(Field::count("claim"), schedule.claim);
  }

  /// Rows of a register tile that is `groups` vectors wide.
  int64_t rowsOf(int64_t groups, const TargetInfo &target) const;
  int64_t lanes() const { return groups * width; }
  /// Blocks in memory per block of keys.
  int64_t keyTiles() const { return keyBlock / keyTile; }
};

/// One weft.attention.
llvm::LogicalResult emitAttention(KernelFunction &kernel);

} // namespace weft

#endif
