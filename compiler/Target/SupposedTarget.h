// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The target of a pass that may run alone.
#ifndef WEFT_COMPILER_TARGET_SUPPOSEDTARGET_H
#define WEFT_COMPILER_TARGET_SUPPOSEDTARGET_H

#include "compiler/Target/TargetInfo.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include <optional>

namespace weft {

/// Fills `target`, unless the pass was made for one, with the host as its options suppose it to be.
/// Emits an error that lists the choices for an unknown `isa`.
inline llvm::LogicalResult supposeTarget(std::optional<TargetInfo> &target, llvm::StringRef isa,
                                         int64_t threads, mlir::MLIRContext *context) {
  if (target)
    return llvm::success();
  llvm::Expected<TargetInfo> supposed = TargetInfo::supposed(isa, threads);
  if (!supposed)
    return mlir::emitError(mlir::UnknownLoc::get(context), llvm::toString(supposed.takeError()));
  target = *supposed;
  return llvm::success();
}

} // namespace weft

#endif
