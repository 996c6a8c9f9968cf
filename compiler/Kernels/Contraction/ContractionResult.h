// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stores a contraction's sums: between the chunks of a long reduction spilled to the memory of a
// root, after the last chunk through the epilogue into every root. The epilogue runs on the
// accumulators, or on the tile in L1 if it calls transcendental functions.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONRESULT_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONRESULT_H

#include "compiler/Kernels/Contraction/ContractionMatch.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

/// Steps of the innermost reduced dim between spills, with all steps of the outer ones or, if the
/// outermost is split into chunks as well, one of its steps.
struct Chunk {
  mlir::Value start;
  int64_t size;
  bool first, last; ///< whether it is the first or the last chunk of the sum
};

class ContractionResult : private IndexArithmetic {
public:
  /// `point` is the position of the sums in the result.
  ContractionResult(KernelFunction &kernel, ElementEmitter &point, const ContractionMatch &match,
                    const ContractionSchedule &schedule)
      : IndexArithmetic(kernel.builder, mlir::linalg::GenericOp(match.generic).getLoc()),
        kernel(kernel), point(point), match(match), schedule(schedule), row(match.roles.row) {}

  /// Says that tiles begin at multiples of the schedule's rows: where a root's index divides the
  /// row, as of an image with a border, it is then mostly the tile's number that is divided.
  void numberTiles(int64_t tiles);

  /// Whether sums were spilled to a root's memory in the code emitted so far.
  bool hasSpilled() const { return spilled; }

  /// Stores a chunk's `sums` [row][group] of the tile at the point, whose lanes are set. `tile` is
  /// scratch for them, for schedules with `tileEpilogue`.
  void storeTile(int64_t rows, int64_t groups, llvm::MutableArrayRef<mlir::Value> sums,
                 const Chunk &chunk, mlir::Value tile);
  /// The same for the one row at the point.
  void storeRow(llvm::ArrayRef<mlir::Value> sums, const Chunk &chunk);

private:
  const EpilogueRoot &spillRoot() const { return match.roots[*match.spillRoot]; }
  EpilogueRoot rootOfRow(const EpilogueRoot &root, int64_t i) const;
  void spill(const EpilogueRoot &root, llvm::ArrayRef<mlir::Value> sums);
  void addSpilled(const EpilogueRoot &root, llvm::MutableArrayRef<mlir::Value> sums);
  void emitEpilogue(mlir::Value firstRow, int64_t rows, int64_t groups,
                    llvm::ArrayRef<mlir::Value> sums, mlir::Value tile);
  void storeRoots(llvm::ArrayRef<EpilogueRoot> roots, const Emitted &sums);
  mlir::Value currentRow();
  void setRow(mlir::Value number);

  KernelFunction &kernel;
  ElementEmitter &point;
  const ContractionMatch &match;
  const ContractionSchedule &schedule;
  std::optional<unsigned> row;        ///< dim of the tile rows
  std::optional<unsigned> tileNumber; ///< dim of the tiles, if rows are divided
  bool spilled = false;
};

} // namespace weft

#endif
