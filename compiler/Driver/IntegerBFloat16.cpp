// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Driver/IntegerBFloat16.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

/// The bits of what `read` gives, or null if it is no read.
static Value *readBits(IRBuilder<> &builder, Instruction &read) {
  if (auto *load = dyn_cast<LoadInst>(&read)) {
    LoadInst *bits = builder.CreateAlignedLoad(builder.getInt16Ty(), load->getPointerOperand(),
                                               load->getAlign(), load->isVolatile());
    bits->setAAMetadata(load->getAAMetadata());
    return bits;
  }
  if (auto *element = dyn_cast<ExtractElementInst>(&read)) {
    Value *vector = element->getVectorOperand();
    auto type = cast<VectorType>(vector->getType());
    Value *bits = builder.CreateBitCast(
        vector, VectorType::get(builder.getInt16Ty(), type->getElementCount()));
    return builder.CreateExtractElement(bits, element->getIndexOperand());
  }
  return nullptr;
}

PreservedAnalyses weft::IntegerBFloat16Pass::run(Function &function, FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &read : make_early_inc_range(instructions(function))) {
    if (!read.getType()->isBFloatTy())
      continue;
    IRBuilder<> builder(&read);
    Value *bits = readBits(builder, read);
    if (!bits)
      continue;
    read.replaceAllUsesWith(builder.CreateBitCast(bits, read.getType()));
    read.eraseFromParent();
    changed = true;
  }
  return changed ? PreservedAnalyses::allInSet<CFGAnalyses>() : PreservedAnalyses::all();
}
