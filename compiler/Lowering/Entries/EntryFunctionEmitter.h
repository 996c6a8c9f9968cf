// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The emission of one entry: EntryFunction.cpp has its stages, addresses, loops and kernels,
// EntryServices.cpp what the host does for it.
#ifndef WEFT_COMPILER_LOWERING_ENTRIES_ENTRYFUNCTIONEMITTER_H
#define WEFT_COMPILER_LOWERING_ENTRIES_ENTRYFUNCTIONEMITTER_H

#include "compiler/Lowering/Entries/AbiTypes.h"
#include "compiler/Lowering/Entries/EntryFunction.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weft {

class EntryFunctionEmitter {
public:
  EntryFunctionEmitter(const EntryIR &form, llvm::ArrayRef<mlir::func::FuncOp> fallbacks)
      : form(form), module(form.function()->getParentOfType<mlir::ModuleOp>()),
        fallbacks(fallbacks), context(module.getContext()), builder(context),
        loc(form.function().getLoc()), pointer(mlir::LLVM::LLVMPointerType::get(context)) {}

  llvm::FailureOr<EntryFunction> emit();

private:
  void createFunction();
  void loadTensors();
  llvm::LogicalResult emitAddress(mlir::Operation *op);
  llvm::LogicalResult emitStep(mlir::Operation *op);
  llvm::LogicalResult emitLoop(mlir::scf::ForOp loop);
  void beginStage();
  void chooseStage();
  llvm::LogicalResult emitCall(mlir::func::CallOp call);
  mlir::func::FuncOp calleeOf(mlir::func::CallOp call) {
    return module.lookupSymbol<mlir::func::FuncOp>(call.getCallee());
  }
  void emitView(mlir::memref::ViewOp view);
  void emitKernelCall(mlir::func::CallOp call, mlir::func::FuncOp kernel);
  void emitBarrier();
  void emitVerdict();
  void emitStageEnd();
  void emitFallback(mlir::func::CallOp call, mlir::func::FuncOp service);
  mlir::Value emitTensors(mlir::func::CallOp call, mlir::func::FuncOp service);
  void emitAssert(mlir::func::CallOp call);
  void emitCopy(mlir::func::CallOp call);
  void emitMark();

  /// Emits `then` for when `condition` holds; emission continues after it.
  void emitIf(mlir::Value condition, llvm::function_ref<void()> then);
  mlir::Block *newBlock(llvm::ArrayRef<mlir::Type> arguments = {});
  mlir::Value integer(unsigned bits, int64_t value) {
    return mlir::LLVM::ConstantOp::create(builder, loc, builder.getIntegerType(bits), value);
  }
  mlir::Value isNonZero(mlir::Value value) {
    return mlir::LLVM::ICmpOp::create(builder, loc, mlir::LLVM::ICmpPredicate::ne, value,
                                      mlir::LLVM::ZeroOp::create(builder, loc, value.getType()));
  }
  mlir::Value fieldAddress(int32_t field) {
    return mlir::LLVM::GEPOp::create(builder, loc, pointer, abi::contextType(context),
                                     contextPointer, llvm::ArrayRef<mlir::LLVM::GEPArg>{0, field});
  }
  mlir::Value loadField(int32_t field, mlir::Type type) {
    return mlir::LLVM::LoadOp::create(builder, loc, type, fieldAddress(field));
  }
  void storeStatus(mlir::Value status) {
    mlir::LLVM::StoreOp::create(builder, loc, status, fieldAddress(abi::field::contextStatus));
  }
  /// The address of a constant array.
  mlir::Value dimensions(llvm::ArrayRef<int64_t> values);

  const EntryIR &form;
  mlir::ModuleOp module;
  llvm::ArrayRef<mlir::func::FuncOp> fallbacks;
  mlir::MLIRContext *context;
  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::Type pointer;

  mlir::LLVM::LLVMFuncOp function;
  mlir::Value contextPointer, thread, threads; ///< of the C function
  mlir::Value isFirst, wantsMark, markFunction;
  llvm::DenseMap<mlir::Value, mlir::Value> values; ///< memref to pointer, index to i64
  llvm::SmallVector<mlir::Block *> stages;
  int32_t callNumber = 0, assertNumber = 0;
  bool verdictPending = false; ///< a fallback or assert has run since the status was last checked
};

} // namespace weft

#endif
