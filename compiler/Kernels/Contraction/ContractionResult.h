// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a contraction's sums go: between the chunks of a long sum they wait where a root will
// be stored, at its end through the epilogue into every root. The epilogue runs on the
// accumulators, or on the tile in L1 when it holds transcendental functions.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONRESULT_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONRESULT_H

#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Emission/Epilogue.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

/// Steps of the innermost reduced dim between spills, for all steps of the others or, where the
/// outermost is divided, one of its steps.
struct Chunk {
  mlir::Value start;
  int64_t size;
  bool first, last; ///< of the sum
};

class ContractionResult : private IndexArithmetic {
public:
  /// `point` is where sums are stored, along its dim `row` if there is one.
  ContractionResult(KernelFunction &kernel, ElementEmitter &point, mlir::linalg::GenericOp generic,
                    const ContractionSchedule &schedule)
      : IndexArithmetic(kernel.builder, generic.getLoc()), kernel(kernel), point(point),
        generic(generic), schedule(schedule) {}

  /// Finds what is stored where the sums have `index`; fails where that is not elementwise.
  llvm::LogicalResult match(const Index &index, std::optional<unsigned> row);

  llvm::ArrayRef<EpilogueRoot> getRoots() const { return roots; }
  /// Whether sums can wait: some root has their type.
  bool canSpill() const { return spillRoot != nullptr; }
  /// Whether sums have waited in a root's memory, in what was emitted so far.
  bool hasSpilled() const { return spilled; }
  /// Whether a root stands on the sums through functions of many instructions.
  bool isTranscendental() const;

  /// Stores a chunk's `sums` [row][group] of a tile at the point; its lanes are set. `tile` is
  /// memory for them, for schedules with `tileEpilogue`.
  void storeTile(int64_t rows, int64_t groups, llvm::MutableArrayRef<mlir::Value> sums,
                 const Chunk &chunk, mlir::Value tile);
  /// The same for the one row at the point.
  void storeRow(llvm::ArrayRef<mlir::Value> sums, const Chunk &chunk);

private:
  void spill(llvm::ArrayRef<mlir::Value> sums);
  void addSpilled(llvm::MutableArrayRef<mlir::Value> sums);
  void emitEpilogue(mlir::Value firstRow, int64_t rows, int64_t groups,
                    llvm::ArrayRef<mlir::Value> sums, mlir::Value tile);
  void storeRoots(const Emitted &sums);
  mlir::Value currentRow();
  void setRow(mlir::Value number);

  KernelFunction &kernel;
  ElementEmitter &point;
  mlir::linalg::GenericOp generic;
  const ContractionSchedule &schedule;
  std::optional<unsigned> row;
  llvm::SmallVector<EpilogueRoot> roots;
  const EpilogueRoot *spillRoot = nullptr;
  bool spilled = false;
};

} // namespace weft

#endif
