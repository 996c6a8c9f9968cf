// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The LLVM dialect becomes machine code, kernel by kernel, on all processors.
#ifndef WEFT_COMPILER_DRIVER_CODEGEN_H
#define WEFT_COMPILER_DRIVER_CODEGEN_H

#include "compiler/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CodeGen.h"
#include <atomic>
#include <vector>

namespace weft {

/// A relocatable, position-independent object file in memory, or the text of one.
struct ObjectCode {
  std::string name;
  llvm::SmallVector<char, 0> bytes;
};

/// Compile a module in the LLVM dialect: one object for what lies in it directly (entry points,
/// the artifact's table), then one for each nested module (a kernel). All symbols but
/// `exported` are hidden. Runs in parallel on the context's threads; fails after a diagnostic,
/// also where `cancelled` comes to be set between two kernels. form: object files or assembly.
llvm::FailureOr<std::vector<ObjectCode>>
generateCode(mlir::ModuleOp module, const TargetInfo &target, llvm::StringRef exported,
             const std::atomic<bool> *cancelled = nullptr,
             llvm::CodeGenFileType form = llvm::CodeGenFileType::ObjectFile);

} // namespace weft

#endif
