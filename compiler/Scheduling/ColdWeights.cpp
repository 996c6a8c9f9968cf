// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Scheduling/ColdWeights.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/EntryFunctions.h"
#include "compiler/Graph/OpStructure.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weft;

/// Whether a kernel sums products and reads all of its operands.
static bool isContraction(func::FuncOp kernel) {
  auto kind = kernel ? kernel->getAttrOfType<StringAttr>(attr::kernel) : StringAttr();
  if (!kind || kind.getValue() == "contraction")
    return kind != nullptr;
  auto anchor =
      RegisteredOperationName::lookup(("weft." + kind.getValue()).str(), kernel.getContext());
  auto *sum = anchor ? anchor->getInterface<SumOpInterface>() : nullptr;
  return sum && sum->readsAll();
}

/// Bytes of the entry's arguments that its contractions read.
static int64_t bytesRead(func::FuncOp entry, const SymbolTable &symbols) {
  llvm::SetVector<Value> read;
  for (func::CallOp call : entry.getOps<func::CallOp>())
    if (isContraction(symbols.lookup<func::FuncOp>(call.getCallee())))
      for (Value operand : call.getOperands())
        if (Value owner = ownerOf(operand); isa<BlockArgument>(owner))
          read.insert(owner);
  int64_t bytes = 0;
  for (Value argument : read)
    bytes += byteSize(cast<ShapedType>(argument.getType()));
  return bytes;
}

llvm::StringSet<> weft::findKernelsOfColdWeights(ModuleOp module, int64_t cacheBytes) {
  llvm::StringSet<> kernels;
  SymbolTable symbols(module);
  for (func::FuncOp entry : entriesAndSteps(module))
    if (bytesRead(entry, symbols) > cacheBytes)
      for (func::CallOp call : entry.getOps<func::CallOp>())
        kernels.insert(call.getCallee());
  return kernels;
}
