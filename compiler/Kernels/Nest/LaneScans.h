// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scans of many rows at once, one per lane, with the carried values in registers.
#ifndef WEFT_COMPILER_KERNELS_NEST_LANESCANS_H
#define WEFT_COMPILER_KERNELS_NEST_LANESCANS_H

#include "compiler/Kernels/Nest/Reductions.h"

#include <functional>

namespace weft {

/// The dims of rows that are scanned together.
struct ScanDims {
  unsigned along; ///< scanned dim
  unsigned lane;  ///< dim of the lanes: a row for each of its values
  bool squares;   ///< memory is contiguous along the rows: transpose squares in registers
};

class LaneScans {
public:
  /// `store`: emits the stores of what is computed at the emitter's point.
  LaneScans(ElementEmitter &point, llvm::ArrayRef<ScanDemand> scans, ScanDims dims,
            VectorBlock vectors, std::function<void()> store);

  /// Scans the rows `base` to `base` + `extent`.
  void emit(mlir::Value base, int64_t extent);

  /// The result of a scan at the emitter's point.
  std::optional<Emitted> find(mlir::Value tensor) const;

private:
  using Values = llvm::SmallVector<mlir::Value>;

  Values step(mlir::Value position, mlir::ValueRange carried);
  void emitSquares(mlir::Value base, int64_t lines);
  Values square(mlir::Value base, int64_t lines, mlir::Value first, int64_t count,
                mlir::ValueRange carried);
  void moveTo(unsigned dim, mlir::Value from, int64_t by);
  /// `carried` combined with `value`; `value` if `carried` is null, as for the first element.
  mlir::Value combine(CumulativeOp op, mlir::Value carried, mlir::Value value);
  mlir::Value rounded(CumulativeOp op, mlir::Value carried);

  ElementEmitter &point;
  llvm::SmallVector<ScanDemand, 0> scans;
  ScanDims dims;
  VectorBlock vectors;
  int64_t width;
  std::function<void()> store;
  llvm::SmallVector<Emitted> found; ///< results of the scans so far, at the point
};

} // namespace weft

#endif
