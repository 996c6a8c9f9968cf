// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Splitting of A rows into AMX tiles: what AmxContraction shares with the splitters for contiguous
// and for strided rows.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_AMXTILELOADS_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_AMXTILELOADS_H

#include "compiler/Kernels/Contraction/AmxContraction.h"

namespace weft {

/// Splits one piece of rows `from`, `from` + 1, ... of a stage; rows are numbered through its unit
/// steps. All rows of a piece lie in one unit step.
class AmxContraction::RowSplitter {
public:
  RowSplitter(AmxContraction &of, const Stage &stage, mlir::Value from);
  virtual ~RowSplitter() = default;

  virtual void split(int64_t piece) = 0;
  void finish() { of.storeWatch(watch, of.rowWatch, of.parityOf(rowBlock)); }

protected:
  Bf16Split splitWatched(mlir::Value numbers) { return of.splitWatched(numbers, watch); }
  /// Stores a row's words of one part; `row` is relative to the piece.
  void store(mlir::Value words, int64_t row, int64_t part);

  AmxContraction &of;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Value rowBlock, memory;
  llvm::SmallVector<mlir::Value, 2> watch;
  mlir::Value rowInBlock, innerStart, offset;

private:
  mlir::Value target;
};

} // namespace weft

#endif
