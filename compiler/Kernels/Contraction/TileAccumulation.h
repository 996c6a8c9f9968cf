// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sums of one register tile of a contraction, over the steps of a chunk.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_TILEACCUMULATION_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_TILEACCUMULATION_H

#include "compiler/Kernels/Contraction/ContractionRoles.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Contraction/PackedAPanel.h"
#include "compiler/Kernels/Contraction/PackedBPanel.h"
#include "compiler/Kernels/Contraction/PanelPrefetch.h"
#include "compiler/Kernels/Contraction/StridedPrefetch.h"
#include "compiler/Kernels/Contraction/VnniPanels.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

/// What tiles fetch while they compute; null where they fetch nothing.
struct Ahead {
  mlir::Value row;           ///< the first of the next rows
  mlir::Value tile;          ///< number of the tile among those of its row, for its share of these
  int64_t tiles = 1;         ///< of a row, at least
  mlir::Value turn;          ///< of this thread's turns of rows, for its share of the next panel
  int64_t panelsBetween = 0; ///< outer ones of the same block, which are there
  mlir::Value step;          ///< of the next panel, where the steps of one lie apart
};

class TileAccumulation : private IndexArithmetic {
public:
  /// `reduced`: the dims of a chunk, outermost first. `blocks`: memory for a tile of partial
  /// sums, where long sums go in blocks.
  TileAccumulation(KernelFunction &kernel, ElementEmitter &point, mlir::Location loc,
                   const ContractionRoles &roles, llvm::ArrayRef<unsigned> reduced,
                   const ContractionSchedule &schedule, mlir::Type element, mlir::Value blocks);

  /// The sums [row][group] of the tile at the point, whose lanes are set, over the steps of the
  /// innermost dim from `start` on, and all of the others.
  llvm::SmallVector<mlir::Value> emit(int64_t rows, int64_t groups, mlir::Value start, int64_t size,
                                      const Ahead &ahead);

  /// The copied scalars, if they are not read where they lie.
  PackedAPanel *getStrip() { return strip ? &*strip : nullptr; }

  /// The copied vectors, if they are not read where they lie, nor in pairs.
  PackedBPanel *getCopies() { return copies ? &*copies : nullptr; }

  /// Whether the vectors of a block of panels are copied before its rows.
  bool copiesVectors() const { return pairs.has_value(); }
  /// Copies those of the point's panel, number `panel` of its block.
  void copyVectors(mlir::Value panel, mlir::Value start, int64_t size);
  /// What follows reads panel `panel` of the block.
  void enterPanel(mlir::Value panel, mlir::Value start);

private:
  llvm::SmallVector<mlir::Value> emitSegments(int64_t rows, mlir::Value start, int64_t size,
                                              llvm::ArrayRef<mlir::Value> zeros,
                                              const Ahead &ahead);
  llvm::ArrayRef<unsigned> blockDims() const;
  mlir::Value loadTotal(int64_t i);
  llvm::SmallVector<mlir::Value> emitTurn(mlir::Value turn, int64_t begin, int64_t end,
                                          mlir::Value number, mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> emitPutBy(int64_t share, mlir::Value number,
                                           mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> emitReduction(llvm::ArrayRef<unsigned> dims, int64_t rows,
                                               mlir::Value start, int64_t size,
                                               llvm::ArrayRef<mlir::Value> accumulators,
                                               const Ahead &ahead);
  llvm::SmallVector<mlir::Value> emitSteps(int64_t rows, mlir::Value start, int64_t size,
                                           llvm::ArrayRef<mlir::Value> accumulators);
  llvm::SmallVector<mlir::Value> emitStep(int64_t rows, bool isOddLast,
                                          llvm::ArrayRef<mlir::Value> accumulators);
  /// Of the point's lanes.
  mlir::VectorType vectorType() const {
    return mlir::VectorType::get({point.getLanes().width}, element);
  }
  void emitFetch(const Ahead &ahead);
  void emitVectorFetch();

  ElementEmitter &point;
  const ContractionRoles &roles;
  llvm::SmallVector<unsigned> reduced;
  const ContractionSchedule &schedule;
  mlir::Type element;
  mlir::Value blocks; ///< the totals of a tile's sums
  std::optional<PackedAPanel> strip;
  std::optional<VnniPanels> pairs;
  std::optional<PackedBPanel> copies;
  std::optional<PanelPrefetch> panelPrefetch;
  std::optional<StridedPrefetch> stridedPrefetch;
};

} // namespace weft

#endif
