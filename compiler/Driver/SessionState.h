// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a session holds.
#ifndef WEFT_COMPILER_DRIVER_SESSIONSTATE_H
#define WEFT_COMPILER_DRIVER_SESSIONSTATE_H

#include "compiler/Driver/HandleTable.h"
#include "compiler/Driver/Session.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/PatternMatch.h"

namespace weft::api {

/// What `remember` keeps: a copy of the module, and the handles on the copy.
struct Memory {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  HandleTable::Record handles;
};

struct Session::State {
  explicit State(std::shared_ptr<mlir::MLIRContext> context)
      : context(std::move(context)), rewriter(this->context.get(), &handles) {}

  std::shared_ptr<mlir::MLIRContext> context; ///< shared by clones; outlives the module
  mlir::OwningOpRef<mlir::ModuleOp> module;
  HandleTable handles;
  mlir::IRRewriter rewriter;
  std::vector<Memory> memories; ///< the last one is the innermost
  std::vector<Remark> remarks;

  mlir::Location locationOf(const Line &line);
  static Line lineOf(mlir::Location location);
  /// The function of a handle; null after a fault.
  mlir::func::FuncOp function(Fault &fault, Handle handle);
  /// Brings the module's result types in line with what it returns.
  static void updateType(mlir::func::FuncOp function);
};

} // namespace weft::api

#endif
