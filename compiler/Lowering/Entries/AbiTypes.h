// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// runtime/Abi.h as LLVM types, and tensors as it describes them.
#ifndef WEFT_COMPILER_LOWERING_ENTRIES_ABITYPES_H
#define WEFT_COMPILER_LOWERING_ENTRIES_ABITYPES_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"

namespace weft::abi {

mlir::LLVM::LLVMStructType tensorType(mlir::MLIRContext *context);
mlir::LLVM::LLVMStructType contextType(mlir::MLIRContext *context);
mlir::LLVM::LLVMStructType entryType(mlir::MLIRContext *context);
mlir::LLVM::LLVMStructType artifactType(mlir::MLIRContext *context);

/// int32_t (WeftContext *, int32_t thread, int32_t threads)
mlir::LLVM::LLVMFunctionType entryFunctionType(mlir::MLIRContext *context);
mlir::LLVM::LLVMFunctionType barrierFunctionType(mlir::MLIRContext *context);
mlir::LLVM::LLVMFunctionType fallbackFunctionType(mlir::MLIRContext *context);
mlir::LLVM::LLVMFunctionType markFunctionType(mlir::MLIRContext *context);

/// Indices of struct fields.
namespace field {
constexpr int32_t contextTensors = 2, contextArena = 3, contextBarrier = 4, contextFallback = 5,
                  contextMark = 6, contextStatus = 7, contextStage = 8;
constexpr int32_t tensorData = 0;
} // namespace field

/// A tensor as the caller of an entry sees it.
struct TensorInfo {
  int32_t dtype;
  llvm::StringRef dtypeName;
  llvm::SmallVector<int64_t> shape, strides;
};

/// `type` is a logical type; if it is tiled, callers see the physical tensor.
TensorInfo describe(mlir::RankedTensorType type);

} // namespace weft::abi

#endif
