// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The accumulation of one register tile of a contraction over the steps of a chunk.
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

/// What tiles prefetch or pack while they compute; null values where there is nothing.
struct Ahead {
  mlir::Value row;           ///< first of the next rows of A
  mlir::Value tile;          ///< index of the tile in its row of tiles, to share the prefetching
  int64_t tiles = 1;         ///< tiles of a row, at least
  mlir::Value turn;          ///< index of the row tile, to share the next panel
  int64_t panelsBetween = 0; ///< packed B: outer panels to skip; strided B: panels ahead
  mlir::Value step;          ///< first step of the next panel, if B is strided
};

class TileAccumulation : private IndexArithmetic {
public:
  /// `reduced`: the dims of a chunk, outermost first. `blocks`: memory for the totals of a tile, if
  /// sums are blocked.
  TileAccumulation(KernelFunction &kernel, ElementEmitter &point, mlir::Location loc,
                   const ContractionRoles &roles, llvm::ArrayRef<unsigned> reduced,
                   const ContractionSchedule &schedule, mlir::Type element, mlir::Value blocks);

  /// The sums [row][group] of the tile at the point, whose lanes are set, over the steps of the
  /// innermost dim from `start` on, and all steps of the others.
  llvm::SmallVector<mlir::Value> emit(int64_t rows, int64_t groups, mlir::Value start, int64_t size,
                                      const Ahead &ahead);

  /// The packed A panel, or null if A is read from its original layout.
  PackedAPanel *getStrip() { return strip ? &*strip : nullptr; }

  /// The packed B panel, or null if B is read from its original layout or from VNNI panels.
  PackedBPanel *getCopies() { return copies ? &*copies : nullptr; }

  /// Whether the B panels of a block are packed before its rows.
  bool copiesVectors() const { return pairs.has_value(); }
  /// Packs the point's panel, number `panel` of its block.
  void copyVectors(mlir::Value panel, mlir::Value start, int64_t size);
  /// Makes panel `panel` of the block current.
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
  /// A vector of the point's lanes.
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
  mlir::Value blocks; ///< totals of a tile's sums in memory
  std::optional<PackedAPanel> strip;
  std::optional<VnniPanels> pairs;
  std::optional<PackedBPanel> copies;
  std::optional<PanelPrefetch> panelPrefetch;
  std::optional<StridedPrefetch> stridedPrefetch;
};

} // namespace weft

#endif
