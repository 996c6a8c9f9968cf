// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which kernels read what the threads of others have written, each its share.
#ifndef WEFT_COMPILER_LOWERING_ENTRIES_CROSSTHREADREADS_H
#define WEFT_COMPILER_LOWERING_ENTRIES_CROSSTHREADREADS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace weft {

/// Follows the kernels of a module while they are emitted, in the order of their calls.
class CrossThreadReads {
public:
  explicit CrossThreadReads(mlir::ModuleOp module);

  /// Whether all calls of `kernel` read much of what threads have divided, and leave no little
  /// results to kernels of one thread, which would have to fetch these again.
  bool by(llvm::StringRef kernel) const;

  /// `kernel` has been emitted.
  void add(mlir::func::FuncOp kernel);

private:
  bool isReader(mlir::func::CallOp call) const;

  llvm::StringMap<llvm::SmallVector<mlir::func::CallOp>> calls; ///< of a kernel, by name
  llvm::StringSet<> divided;                                    ///< kernels of several threads
};

/// The tensor that owns the memory of `tensor`, in an entry on tensors.
mlir::Value ownerOf(mlir::Value tensor);

} // namespace weft

#endif
