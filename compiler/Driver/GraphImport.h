// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The JSON graph, which Python makes without loading MLIR, becomes a module.
#ifndef WEFT_COMPILER_DRIVER_GRAPHIMPORT_H
#define WEFT_COMPILER_DRIVER_GRAPHIMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace weft {

/// The version of the JSON graph that importGraph reads.
inline constexpr int64_t graphVersion = 3;

/// Build the verified module of the graph `json`: one public function, the entry of role `main`,
/// whose arguments carry `weft.name` and `weft.kind` and whose ops carry the user's lines.
///
/// An argument whose `order` is not row-major has a layout in its type, and a
/// `weft.relayout` right after it, so that all other types of the graph are plain.
///
/// Returns null after a diagnostic, which names the node and its op at the user's line, when
/// the JSON is malformed, names something unknown, or breaks a rule of an op.
mlir::OwningOpRef<mlir::ModuleOp> importGraph(llvm::StringRef json, mlir::MLIRContext &context);

} // namespace weft

#endif
