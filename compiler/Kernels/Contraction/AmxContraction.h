// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks of a contraction on AMX, accumulated in float32. Operands are bfloat16, or float32 split
// exactly into three bfloat16 parts; six of their nine products matter
// (docs/decisions/0014-float32-on-amx.md). The packed B panels of a block stay in L2; A
// rows are split from their original layout while AMX multiplies the rows before.
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
  /// Reduction steps of one AMX product.
  static constexpr int64_t unitSteps = 32;

  /// Callbacks into the contraction's emitter. Rows are numbered row-major through all free dims of
  /// A, the tile's row dim innermost.
  struct Surroundings {
    /// Moves the point to a row.
    llvm::function_ref<void(mlir::Value row)> atRow;
    /// Moves the point to a panel and emits `body` once for each possible number of valid lanes.
    llvm::function_ref<void(mlir::Value panel, llvm::function_ref<void()> body)> atPanel;
    /// Stores the sums of the point's row, one vector per lane group.
    llvm::function_ref<void(llvm::ArrayRef<mlir::Value> sums)> storeRow;
    /// Computes and stores rows of a panel on the vector units.
    llvm::function_ref<void(mlir::Value panel, mlir::Value firstRow, mlir::Value rows)> byVectors;
  };

  /// Reserves scratch for `panels` panels and chunks of up to `longestChunk` steps of the innermost
  /// dim of `reduced`, and configures the tiles.
  AmxContraction(KernelFunction &kernel, ElementEmitter &point, mlir::Location loc,
                 const ContractionRoles &roles, llvm::ArrayRef<unsigned> reduced, int64_t panels,
                 int64_t longestChunk);
  void release() { unit.release(); }

  /// Panels [panel, panelEnd) of row blocks [low, high), for `chunkSize` steps of the innermost
  /// reduced dim from `chunkStart` on, and all steps of the others.
  void emit(mlir::Value panel, mlir::Value panelEnd, mlir::Value low, mlir::Value high,
            mlir::Value chunkStart, int64_t chunkSize, const Surroundings &surroundings);

private:
  static constexpr int64_t lanesOfVector = 16, registerWords = AmxTile::registerBytes / 4;
  /// Work of each of the two passes (fill, transpose) over 16 transposed rows, counted in rows.
  static constexpr int64_t transposedRows = 8;

  using Watch = MagnitudeWatch::State;
  static constexpr int64_t watchWords = 2 * lanesOfVector;

  bool splits() const { return parts > 1; }
  int64_t stepWords() const;
  int64_t vectorPartOffset(int64_t part, int64_t group) const;

  /// A group of unit steps of a row block, whose split parts share one buffer.
  struct Stage {
    mlir::Value rowBlock, number; ///< number: index of the stage within the sum
    mlir::Value buffer;           ///< 0 or 1 (double buffering)
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
  void beginSums(mlir::Value number, mlir::Value stage);
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
  /// The state of the watch in slot `slot` of `memory`; empty for bfloat16, which needs none.
  Watch loadWatch(mlir::Value memory, mlir::Value slot);
  void storeWatch(llvm::ArrayRef<mlir::Value> state, mlir::Value memory, mlir::Value slot);
  Watch beginWatch();

  ElementEmitter &point;
  const ContractionRoles &roles;
  llvm::ArrayRef<unsigned> reduced;
  int64_t rowCount;
  bool transposes; ///< the steps of a row are strided
  int64_t pieceRows;
  int64_t parts;     ///< bfloat16 parts of an element
  bool readsInPlace; ///< A tiles are loaded directly from the operand
  /// Unit steps accumulated in tiles before they are added to the sum: rounding errors grow with
  /// the length of a chain, and the split rows of a stage fit L1 beside a panel's parts.
  int64_t stageSteps;
  AmxTile unit;
  MagnitudeWatch nonzeros, allNumbers;
  mlir::VectorType operand, floats, words;
  mlir::Value vectorParts; ///< [panel][unit step][part][lane group][tile word]
  mlir::Value rowParts;    ///< [buffer][unit step][part][half of the rows][tile word]
  mlir::Value sums;        ///< [panel][row][lane]
  mlir::Value stageSums;   ///< [row][lane]
  mlir::Value squares;     ///< [part][pair of steps][row], transposed into rowParts
  mlir::Value panelWatch;  ///< [panel]: the watch's state
  // Double-buffered, as the next block's rows are split while this one's are multiplied:
  mlir::Value rowStarts; ///< [parity of the block][row]: address of the row
  mlir::Value rowWatch;  ///< [parity of the block]: the watch's state

  /// Panels [panel, panel + count) by row blocks [low, high).
  struct Block {
    mlir::Value panel, count, low, high;
    const Surroundings *surroundings = nullptr;
  };
  Block block; ///< being computed, and its chunk:
  mlir::Value chunkStart;
  int64_t chunkSize = 0, innerSteps = 0, chunkSteps = 0, stages = 0;
};

} // namespace weft

#endif
