// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Running reductions of many lines at once, one in each lane, which carry nothing through memory.
#ifndef WEFT_COMPILER_KERNELS_NEST_LANESCANS_H
#define WEFT_COMPILER_KERNELS_NEST_LANESCANS_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"

namespace weft {

/// Which lines are scanned together.
struct ScanDims {
  unsigned along; ///< scanned, in order
  unsigned lane;  ///< a line for each of its values
  bool squares;   ///< memory is contiguous along the lines: squares go through registers
};

/// The dims of a nest whose scans all run along `row`, the only dim looped over inside a cell, or
/// nothing where vectors would read and write element by element.
std::optional<ScanDims> chooseScanDims(const AccessAnalysis &demand,
                                       llvm::ArrayRef<unsigned> gridDims,
                                       llvm::ArrayRef<unsigned> rowDims, mlir::AffineExpr stored,
                                       const IndexSpace &space, int64_t width);

class LaneScans {
public:
  /// store: stores what is computed at the emitter's point.
  LaneScans(ElementEmitter &point, llvm::ArrayRef<ScanDemand> scans, ScanDims dims, int64_t width,
            llvm::function_ref<void()> store);

  /// The lines `base` to `base` + `extent`.
  void emit(mlir::Value base, int64_t extent);

  /// What a scan has come to at the emitter's point.
  std::optional<Emitted> find(mlir::Value tensor) const;

private:
  using Values = llvm::SmallVector<mlir::Value>;

  Values step(mlir::Value position, mlir::ValueRange carried);
  void emitSquares(mlir::Value base, int64_t lines);
  Values square(mlir::Value base, int64_t lines, mlir::Value first, int64_t count,
                mlir::ValueRange carried);
  void moveTo(unsigned dim, mlir::Value from, int64_t by);
  /// `value` behind what was carried, which is null at first.
  mlir::Value combine(CumulativeOp op, mlir::Value carried, mlir::Value value);
  mlir::Value rounded(CumulativeOp op, mlir::Value carried);

  ElementEmitter &point;
  llvm::SmallVector<ScanDemand, 0> scans;
  ScanDims dims;
  int64_t width;
  llvm::function_ref<void()> store;
  llvm::SmallVector<Emitted> found; ///< of the scans, as far as they are known at the point
};

} // namespace weft

#endif
