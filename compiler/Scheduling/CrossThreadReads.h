// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels whose inputs are distributed over the caches of several threads.
#ifndef WEFT_COMPILER_SCHEDULING_CROSSTHREADREADS_H
#define WEFT_COMPILER_SCHEDULING_CROSSTHREADREADS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace weft {

/// Tracks the kernels of a module while they are scheduled, in call order.
class CrossThreadReads {
public:
  explicit CrossThreadReads(mlir::ModuleOp module);

  /// Whether all calls of `kernel` read many bytes that parallel kernels wrote, and leave no small
  /// results to serial kernels, which would have to fetch them back.
  bool by(llvm::StringRef kernel) const;

  /// Records that the threads divide `kernel`.
  void addDivided(llvm::StringRef kernel) { divided.insert(kernel); }

private:
  bool isReader(mlir::func::CallOp call) const;

  llvm::StringMap<llvm::SmallVector<mlir::func::CallOp>> calls; ///< by the name of the kernel
  llvm::StringSet<> divided;                                    ///< parallel kernels
};

} // namespace weft

#endif
