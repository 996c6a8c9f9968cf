// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Turns an entry from a function on tensors into calls on memrefs, and loops of calls (EntryIR.h).
#ifndef WEFT_COMPILER_LOWERING_ENTRIES_ENTRYREWRITER_H
#define WEFT_COMPILER_LOWERING_ENTRIES_ENTRYREWRITER_H

#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Graph/KernelSignature.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"

namespace weft {

struct LoopFrame; // in EntryLoops.cpp

/// Rewrites one entry.
class EntryRewriter {
public:
  EntryRewriter(mlir::func::FuncOp entry, mlir::SymbolTable &symbols, int64_t threads)
      : entry(entry), symbols(symbols), threads(threads), builder(entry.getContext()) {}

  llvm::LogicalResult run();

private:
  llvm::LogicalResult changeSignature();
  /// Emits at the builder's insertion point what `op`, on tensors, is on memrefs.
  llvm::LogicalResult rewrite(mlir::Operation *op);
  llvm::LogicalResult rewriteCall(mlir::func::CallOp call);
  llvm::LogicalResult rewriteFallback(TorchFallbackOp op);
  llvm::LogicalResult rewriteAssert(AssertOp op);
  llvm::LogicalResult rewriteAdvance(AdvanceOp op);
  llvm::LogicalResult rewriteLoop(LoopOp loop);
  llvm::LogicalResult rewriteIterations(const LoopFrame &frame, mlir::func::FuncOp step,
                                        mlir::ValueRange invariants, int64_t factor,
                                        mlir::Value begin, mlir::Value end, mlir::Value shift,
                                        llvm::ArrayRef<mlir::Value> inits);
  mlir::Value stepsOf(LoopOp loop);
  void copy(mlir::Value from, mlir::Value to);

  /// Whether @bind computes it.
  bool isBound(mlir::BlockArgument argument) {
    auto kind = entry.getArgAttrOfType<mlir::StringAttr>(argument.getArgNumber(), attr::kind);
    return kind && kind.getValue() == "bound";
  }
  mlir::Value bufferFor(mlir::Value tensor);
  void takePlace(mlir::OpResult result, mlir::func::FuncOp kernel,
                 llvm::ArrayRef<mlir::Value> taken);
  mlir::Value scratchFor(int64_t bytes, mlir::Location loc);
  mlir::Value claimsFor(mlir::MemRefType type, mlir::Location loc);
  mlir::func::FuncOp declareService(llvm::StringRef service, mlir::TypeRange inputs,
                                    mlir::TypeRange outputs);
  llvm::SmallVector<mlir::Value> buffersOf(mlir::ValueRange tensors) {
    return llvm::map_to_vector(tensors, [&](mlir::Value tensor) { return lookUp(tensor); });
  }
  mlir::Value lookUp(mlir::Value tensor);

  mlir::func::FuncOp entry;
  mlir::SymbolTable &symbols;
  int64_t threads;
  mlir::OpBuilder builder;
  bool isBind = false;
  bool anyParallel = false, anyScratch = false;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers; ///< tensor to memref
  mlir::Value sizes;                                ///< of a call, where they are symbols
  mlir::Value noScratch;                            ///< zero bytes, for kernels that need none
  mlir::memref::AllocOp claims;                     ///< work-chunk counters of all kernels
  int64_t claimed = 0;                              ///< bytes assigned to kernels so far
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> copies;
};

} // namespace weft

#endif
