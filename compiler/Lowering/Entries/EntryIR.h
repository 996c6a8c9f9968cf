// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The form of an entry in the loops stage: calls on memrefs, which are arguments, parts of the
// arena, or an advanced view of either, and scf.for loops of such calls, which carry memrefs.
//
//   @main(arguments..., bound..., results..., [arena,] thread, threads)
//
// Each call is to a kernel, (inputs..., outputs..., scratch, thread, threads), or to a service: a
// declaration with `weft.service`, (inputs..., outputs...), run by thread 0 alone. Callees give
// their number of inputs in `weft.num_inputs`. Every tensor argument keeps its logical type in
// `weft.type`.
#ifndef WEFT_COMPILER_LOWERING_ENTRIES_ENTRYIR_H
#define WEFT_COMPILER_LOWERING_ENTRIES_ENTRYIR_H

#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/EntryFunctions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {

constexpr llvm::StringLiteral barrierName = "weft_barrier";
constexpr llvm::StringLiteral verdictName = "weft_verdict";
constexpr llvm::StringLiteral stageName = "weft_stage";

/// An entry and its parts, looked up once.
class EntryIR {
public:
  /// `entry` is in memref form.
  explicit EntryIR(mlir::func::FuncOp entry);

  mlir::func::FuncOp function() const { return entry; }

  llvm::ArrayRef<mlir::BlockArgument> tensors() const { return tensorArguments; }
  /// Null before memory is planned.
  mlir::Value arena() const { return arenaArgument; }
  mlir::Value thread() const { return threadArgument; }
  mlir::Value threads() const { return threadsArgument; }

  /// Null for an argument without the attribute.
  template <typename Attr = mlir::Attribute>
  Attr argumentAttr(mlir::BlockArgument argument, llvm::StringRef name) const {
    return entry.getArgAttrOfType<Attr>(argument.getArgNumber(), name);
  }

private:
  mutable mlir::func::FuncOp entry;
  llvm::SmallVector<mlir::BlockArgument> tensorArguments;
  mlir::Value arenaArgument, threadArgument, threadsArgument;
};

/// The name of a service, or empty for a kernel.
llvm::StringRef serviceOf(mlir::func::FuncOp callee);

/// Whether only thread 0 runs it.
bool isSerial(mlir::func::FuncOp callee);

/// The inputs and outputs of a call, and its scratch and work-chunk counters (null if it has none).
struct CallOperands {
  mlir::ValueRange inputs, outputs;
  mlir::Value scratch, claims;
};
CallOperands operandsOf(mlir::func::CallOp call, mlir::func::FuncOp callee);

} // namespace weft

#endif
