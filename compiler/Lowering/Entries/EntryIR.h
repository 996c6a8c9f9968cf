// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The form of an entry in the loops stage: a straight line of calls on memrefs, which are
// arguments, parts of the arena, or an advanced view of either.
//
//   @main(arguments..., bound..., results..., [arena,] thread, threads)
//
// Each call is to a kernel, (inputs..., outputs..., scratch, thread, threads), or to a
// service: a declaration with `weft.service`, (inputs..., outputs...), which thread 0 runs
// alone. Callees say with `weft.num_inputs` how many operands they read. Every tensor
// argument keeps its logical type in `weft.type`.
#ifndef WEFT_COMPILER_LOWERING_ENTRIES_ENTRYIR_H
#define WEFT_COMPILER_LOWERING_ENTRIES_ENTRYIR_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// Attribute names of the entries and their callees.
namespace attr {
// On functions.
constexpr llvm::StringLiteral entry = "weft.entry";
constexpr llvm::StringLiteral kernel = "weft.kernel";
/// "barrier", "verdict" (a barrier, behind which all leave if thread 0 has found a reason),
/// "stage" (the next stage begins), "fallback", "assert", "copy"
constexpr llvm::StringLiteral service = "weft.service";
constexpr llvm::StringLiteral numInputs = "weft.num_inputs";
constexpr llvm::StringLiteral scratchBytes = "weft.scratch_bytes";
constexpr llvm::StringLiteral claims = "weft.claims";         ///< sets of counters of claimed parts
constexpr llvm::StringLiteral persistent = "weft.persistent"; ///< memory that keeps its values
constexpr llvm::StringLiteral serial = "weft.serial";
constexpr llvm::StringLiteral flops = "weft.flops";
constexpr llvm::StringLiteral bytes = "weft.bytes";
constexpr llvm::StringLiteral schedule = "weft.schedule";
constexpr llvm::StringLiteral message = "weft.message";     ///< of an assert
constexpr llvm::StringLiteral target = "weft.target";       ///< of a fallback
constexpr llvm::StringLiteral arguments = "weft.arguments"; ///< of a fallback
// On entries.
constexpr llvm::StringLiteral arenaBytes = "weft.arena_bytes";
constexpr llvm::StringLiteral livenessBound = "weft.liveness_bound";
constexpr llvm::StringLiteral maxThreads = "weft.max_threads";
// On arguments of entries and fallbacks.
constexpr llvm::StringLiteral name = "weft.name";
constexpr llvm::StringLiteral kind = "weft.kind"; ///< of the graph, and "bound", "result"
constexpr llvm::StringLiteral type = "weft.type";
constexpr llvm::StringLiteral aliasArgument = "weft.alias_argument";
constexpr llvm::StringLiteral aliasResult = "weft.alias_result";
// On the module.
constexpr llvm::StringLiteral cpuFeatures = "weft.cpu_features";
constexpr llvm::StringLiteral threads = "weft.threads";
} // namespace attr

constexpr llvm::StringLiteral barrierName = "weft_barrier";
constexpr llvm::StringLiteral verdictName = "weft_verdict";
constexpr llvm::StringLiteral stageName = "weft_stage";

/// An entry and what stands in it, looked up once.
class EntryIR {
public:
  /// `entry` is in memref form.
  explicit EntryIR(mlir::func::FuncOp entry);

  mlir::func::FuncOp function() const { return entry; }
  /// The functions of the module that are entries in memref form.
  static llvm::SmallVector<mlir::func::FuncOp> find(mlir::ModuleOp module);

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

/// Only thread 0 runs it.
bool isSerial(mlir::func::FuncOp callee);

/// What a call reads, what it writes, and its scratch buffer (null for services).
struct CallOperands {
  mlir::ValueRange inputs, outputs;
  mlir::Value scratch, claims;
};
CallOperands operandsOf(mlir::func::CallOp call, mlir::func::FuncOp callee);

/// Bytes of a tensor or memref of static shape.
int64_t byteSize(mlir::ShapedType type);

} // namespace weft

#endif
