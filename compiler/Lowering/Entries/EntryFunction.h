// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One entry as a C function of the ABI.
#ifndef WEFT_COMPILER_LOWERING_ENTRIES_ENTRYFUNCTION_H
#define WEFT_COMPILER_LOWERING_ENTRIES_ENTRYFUNCTION_H

#include "compiler/Lowering/Entries/EntryIR.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace weft {

struct EntryFunction {
  mlir::LLVM::LLVMFuncOp function;
  int32_t firstStage, endStage; ///< as WeftEntry has them
};

/// Creates `i32 @weft_entry_NAME(context, thread, threads)` beside the entry. Kernels are
/// called by name with bare pointers; `fallbacks` gives the fallbacks their numbers.
mlir::FailureOr<EntryFunction> emitEntryFunction(const EntryIR &entry,
                                                 llvm::ArrayRef<mlir::func::FuncOp> fallbacks);

} // namespace weft

#endif
