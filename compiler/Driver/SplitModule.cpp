// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One module per kernel, so that kernels can be compiled side by side.
#include "compiler/Driver/SplitModule.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

static bool isKernel(Operation &op) {
  auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
  return function && !function.isExternal() && function->hasAttr("weft.kernel");
}

static void declare(LLVM::LLVMFuncOp function, OpBuilder &builder) {
  Operation *declaration = builder.cloneWithoutRegions(*function);
  SymbolTable::setSymbolVisibility(declaration, SymbolTable::Visibility::Private);
  declaration->removeAttr("weft.kernel");
}

static void setInternal(Operation *op) {
  auto internal = LLVM::LinkageAttr::get(op->getContext(), LLVM::Linkage::Internal);
  if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op); function && !function.isExternal())
    function.setLinkageAttr(internal);
  if (auto global = dyn_cast<LLVM::GlobalOp>(op); global && global.getValueOrNull())
    global.setLinkageAttr(internal);
}

/// Everything that `op` refers to, directly or through what it refers to.
static llvm::SetVector<Operation *> referencesOf(Operation *op, SymbolTable &symbols) {
  llvm::SetVector<Operation *> references;
  SmallVector<Operation *> pending{op};
  while (!pending.empty()) {
    auto uses = SymbolTable::getSymbolUses(pending.pop_back_val());
    for (SymbolTable::SymbolUse use : uses.value_or(SymbolTable::UseRange({})))
      if (Operation *target = symbols.lookup(use.getSymbolRef().getRootReference()))
        if (target != op && references.insert(target) && !isKernel(*target))
          pending.push_back(target);
  }
  return references;
}

static OwningOpRef<ModuleOp> moduleOfKernel(LLVM::LLVMFuncOp kernel, SymbolTable &symbols) {
  OwningOpRef<ModuleOp> part = ModuleOp::create(kernel.getLoc(), kernel.getName());
  OpBuilder builder = OpBuilder::atBlockBegin(part->getBody());
  builder.clone(*kernel);
  for (Operation *reference : referencesOf(kernel, symbols)) {
    if (isKernel(*reference))
      declare(cast<LLVM::LLVMFuncOp>(reference), builder);
    else
      setInternal(builder.clone(*reference));
  }
  return part;
}

SmallVector<OwningOpRef<ModuleOp>> weft::splitModule(ModuleOp module) {
  SymbolTable symbols(module);
  SmallVector<OwningOpRef<ModuleOp>> parts;
  parts.push_back(ModuleOp::create(module.getLoc(), "entries"));
  OpBuilder builder = OpBuilder::atBlockBegin(parts.front()->getBody());
  for (Operation &op : *module.getBody()) {
    if (!isKernel(op)) {
      builder.clone(op);
      continue;
    }
    auto kernel = cast<LLVM::LLVMFuncOp>(op);
    declare(kernel, builder);
    parts.push_back(moduleOfKernel(kernel, symbols));
  }
  return parts;
}
