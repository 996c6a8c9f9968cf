// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Graph/EntryFunctions.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Graph.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

SmallVector<func::FuncOp> weft::entriesOf(ModuleOp module) {
  SmallVector<func::FuncOp> found;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(attr::entry) && !function.isExternal())
      found.push_back(function);
  return found;
}

SmallVector<func::FuncOp> weft::entriesAndSteps(ModuleOp module) {
  SmallVector<func::FuncOp> found = entriesOf(module);
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(attr::step))
      found.push_back(function);
  return found;
}

Value weft::ownerOf(Value tensor) {
  while (isa_and_present<UnrealizedConversionCastOp, AdvanceOp>(tensor.getDefiningOp()))
    tensor = tensor.getDefiningOp()->getOperand(0);
  return tensor;
}

int64_t weft::byteSize(ShapedType type) {
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}
