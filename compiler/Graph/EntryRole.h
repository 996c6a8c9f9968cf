// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each entry of a module is for. Passes find entries by role, never by name.
#ifndef WEFT_COMPILER_GRAPH_ENTRYROLE_H
#define WEFT_COMPILER_GRAPH_ENTRYROLE_H

#include "compiler/Graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include "compiler/Graph/EntryRoleEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/Graph/EntryRoleAttributes.h.inc"

namespace weft {

/// Nothing if `function` is no entry.
std::optional<EntryRole> roleOf(mlir::func::FuncOp function);

/// The first entry of that role in a module, or null.
mlir::func::FuncOp entryOf(mlir::ModuleOp module, EntryRole role);

/// An entry that is named by its role.
mlir::func::FuncOp createEntry(mlir::OpBuilder &builder, mlir::Location loc, EntryRole role,
                               mlir::FunctionType type);

/// Turns `function` into the entry of that role, and names it so.
void makeEntry(mlir::func::FuncOp function, EntryRole role);

/// Marks `function` as the entry of that role, whatever its name.
void setRole(mlir::func::FuncOp function, EntryRole role);

} // namespace weft

#endif
