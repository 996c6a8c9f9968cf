// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An artifact's manifest, as JSON: the counterpart of runtime/Manifest.h.
#ifndef WEFT_COMPILER_LOWERING_ENTRIES_MANIFESTWRITER_H
#define WEFT_COMPILER_LOWERING_ENTRIES_MANIFESTWRITER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace weft {

/// The manifest of a module whose entries are in the form of EntryIR.h, with arenas.
std::string writeManifest(mlir::ModuleOp module);

/// The declarations of a module's fallbacks, in the order of their numbers.
llvm::SmallVector<mlir::func::FuncOp> fallbacksOf(mlir::ModuleOp module);

} // namespace weft

#endif
