// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arguments of a kernel in memref form, which several rooms make and read:
// (inputs..., outputs..., scratch, [counters of work chunks,] thread, threads).
#ifndef WEFT_COMPILER_GRAPH_KERNELSIGNATURE_H
#define WEFT_COMPILER_GRAPH_KERNELSIGNATURE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"

namespace weft {

/// Row-major memory of a tensor of that type.
mlir::MemRefType memrefOf(mlir::Type tensor);

struct KernelSignature {
  /// Of a kernel on tensors, with the scratch that it is marked with and no counters.
  static KernelSignature ofTensors(mlir::func::FuncOp kernel);
  /// Of a kernel in memref form, by its type and its attributes.
  static KernelSignature of(mlir::func::FuncOp emitted);

  mlir::FunctionType type(mlir::MLIRContext *context) const;
  /// Marks `emitted`, whose type this is, with the sizes that the type does not tell apart.
  void mark(mlir::func::FuncOp emitted) const;

  /// Numbers of arguments.
  unsigned scratchNumber() const { return inputs.size() + outputs.size(); }
  std::optional<unsigned> counterNumber() const {
    return counters ? std::optional(scratchNumber() + 1) : std::nullopt;
  }
  unsigned threadNumber() const { return scratchNumber() + (counters ? 2 : 1); }

  llvm::SmallVector<mlir::Type> inputs, outputs;
  int64_t scratchBytes = 0;  ///< of each thread
  mlir::MemRefType counters; ///< of work chunks, in sets; null if the kernel claims none
};

} // namespace weft

#endif
