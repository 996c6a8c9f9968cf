// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks of a contraction on the matrix unit, summed in float32. Operands are bfloat16, or
// float32 that is split, exactly, into three bfloat16 parts; of their nine products six matter
// (docs/decisions/0014-float32-on-amx.md). The vectors' parts of a block of
// panels stay in the second-level cache; those of the rows are made from where the rows lie
// while the unit works on the rows before.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_AMXCONTRACTION_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_AMXCONTRACTION_H

#include "compiler/Kernels/Contraction/ContractionRoles.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"
#include "compiler/Kernels/X86/AmxTile.h"
#include "compiler/Kernels/X86/Bf16Split.h"

namespace weft {

class AmxContraction : private IndexArithmetic {
public:
  static constexpr int64_t blockRows = 32, blockLanes = 32;
  /// Steps of a sum that one product of the unit takes.
  static constexpr int64_t unitSteps = 32;

  /// What the matrix unit leaves to the contraction's emitter. Rows are numbered through all
  /// free dims of the scalars, the tile's innermost.
  struct Surroundings {
    /// Moves the point to a row.
    llvm::function_ref<void(mlir::Value row)> atRow;
    /// Moves the point to a panel and emits `body`, once for each number of lanes that count.
    llvm::function_ref<void(mlir::Value panel, llvm::function_ref<void()> body)> atPanel;
    /// Stores the sums of the point's row, one vector for each group of lanes.
    llvm::function_ref<void(llvm::ArrayRef<mlir::Value> sums)> storeRow;
    /// Computes and stores rows of a panel on the vector units.
    llvm::function_ref<void(mlir::Value panel, mlir::Value firstRow, mlir::Value rows)> byVectors;
  };

  /// Reserves scratch for `panels` panels and chunks of up to `longestChunk` steps of the
  /// innermost dim of `reduced`, and configures the unit.
  AmxContraction(KernelFunction &kernel, ElementEmitter &point, mlir::Location loc,
                 const ContractionRoles &roles, llvm::ArrayRef<unsigned> reduced, int64_t panels,
                 int64_t longestChunk);
  void release() { unit.release(); }

  /// Panels [panel, panelEnd) of blocks of rows [low, high), for `chunkSize` steps of the
  /// innermost reduced dim from `chunkStart` on, and all of the others.
  void emit(mlir::Value panel, mlir::Value panelEnd, mlir::Value low, mlir::Value high,
            mlir::Value chunkStart, int64_t chunkSize, const Surroundings &surroundings);

private:
  static constexpr int64_t lanesOfVector = 16, registerWords = AmxTile::registerBytes / 4;
  /// Each of the two turns of 16 rows that are transposed counts as so many.
  static constexpr int64_t transposedRows = 8;

  using Watch = MagnitudeWatch::State;
  static constexpr int64_t watchWords = 2 * lanesOfVector;

  bool splits() const { return parts > 1; }
  int64_t stepWords() const;
  int64_t vectorPartOffset(int64_t part, int64_t group) const;

  /// A group of unit steps of a block of rows, whose parts are one buffer.
  struct Stage {
    mlir::Value rowBlock, number; ///< number: of the stage in the sum
    mlir::Value buffer;           ///< 0 or 1
  };
  class RowSplitter;
  class ContiguousSplitter;
  class TransposingSplitter;
  class RowFetcher;

  void splitVectors();
  void splitPanel(mlir::Value number);
  void splitStage(const Stage &stage, mlir::Value from);
  void multiplyStage(const Stage &stage, const Stage &next, mlir::Value hasNext);
  void multiplyStep(mlir::Value rowBytes, mlir::Value vectorBytes,
                    llvm::function_ref<void(int64_t product, int64_t count)> besides);
  void multiplyWhileSplitting(mlir::Value rowBytes, mlir::Value vectorBytes, const Stage &next,
                              mlir::Value from);
  void storeSums(mlir::Value number, mlir::Value stage);
  Bf16Split splitWatched(mlir::Value numbers, llvm::MutableArrayRef<mlir::Value> state);
  mlir::Value isExact(mlir::Value number, const Watch &ofRows);
  void finish(mlir::Value rowBlock);
  void multiplyBlock();
  Stage following(const Stage &stage);
  void withSplitter(const Stage &stage, mlir::Value from,
                    llvm::function_ref<void(RowSplitter &)> body);
  void findRows(mlir::Value rowBlock);
  mlir::Value rowStart(mlir::Value row);
  int64_t rowStride() const;
  mlir::Value splitOuterSteps(mlir::Value unitStep);
  mlir::Value rowOffsetOf(mlir::Value unitStep, mlir::Value &innerStart);
  mlir::Value unitStepsOf(mlir::Value stage);

  mlir::Value parityOf(mlir::Value rowBlock);
  /// The state number `slot` of a watch in `memory`; of no use, and empty, for bfloat16.
  Watch loadWatch(mlir::Value memory, mlir::Value slot);
  void storeWatch(llvm::ArrayRef<mlir::Value> state, mlir::Value memory, mlir::Value slot);
  Watch beginWatch();

  ElementEmitter &point;
  const ContractionRoles &roles;
  llvm::ArrayRef<unsigned> reduced;
  int64_t rowCount;
  bool transposes; ///< the steps of a row do not lie side by side
  int64_t pieceRows;
  int64_t parts;     ///< of each number
  bool readsInPlace; ///< the unit reads rows where they lie
  /// Unit steps that are summed before they join the sum: as with the vector units, rounding
  /// errors grow with what is summed at once, and the parts of so many rows fit the first-level
  /// cache beside a panel's.
  int64_t stageSteps;
  AmxTile unit;
  MagnitudeWatch nonzeros, allNumbers;
  mlir::VectorType operand, floats, words;
  mlir::Value vectorParts; ///< [panel][unit step][part][group of lanes][register]
  mlir::Value rowParts;    ///< [buffer][unit step][part][half of the rows][register]
  mlir::Value sums;        ///< [panel][row][lane]
  mlir::Value stageSums;   ///< [row][lane]
  mlir::Value squares;     ///< [part][pair of steps][row], on the way to rowParts
  mlir::Value panelWatch;  ///< [panel]: the watch's state
  // Of two blocks of rows, as the next one's are split while this one's are multiplied:
  mlir::Value rowStarts; ///< [parity of the block][row]: where the rows lie
  mlir::Value rowWatch;  ///< [parity of the block]: the watch's state

  /// Panels [panel, panel + count) by blocks of rows [low, high).
  struct Block {
    mlir::Value panel, count, low, high;
    const Surroundings *surroundings = nullptr;
  };
  Block block; ///< at hand, and its chunk:
  mlir::Value chunkStart;
  int64_t chunkSize = 0, innerSteps = 0, chunkSteps = 0, stages = 0;
};

} // namespace weft

#endif
