// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Driver/IntegerBFloat16.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

/// The integer type of the same form as a bf16 number or vector.
static Type *bitsType(Type *type) {
  Type *bits = Type::getInt16Ty(type->getContext());
  if (auto *vector = dyn_cast<VectorType>(type))
    return VectorType::get(bits, vector->getElementCount());
  return bits;
}

/// What only moves numbers and gives bf16, done with their bits; null if it is anything else.
static Value *moveBits(IRBuilder<> &builder, Instruction &move) {
  auto bitsOf = [&](Value *value) {
    return builder.CreateBitCast(value, bitsType(value->getType()));
  };
  if (auto *load = dyn_cast<LoadInst>(&move)) {
    LoadInst *bits = builder.CreateAlignedLoad(bitsType(load->getType()), load->getPointerOperand(),
                                               load->getAlign(), load->isVolatile());
    bits->setAAMetadata(load->getAAMetadata());
    return bits;
  }
  if (auto *element = dyn_cast<ExtractElementInst>(&move))
    return builder.CreateExtractElement(bitsOf(element->getVectorOperand()),
                                        element->getIndexOperand());
  if (auto *inserted = dyn_cast<InsertElementInst>(&move))
    return builder.CreateInsertElement(bitsOf(inserted->getOperand(0)),
                                       bitsOf(inserted->getOperand(1)), inserted->getOperand(2));
  if (auto *shuffle = dyn_cast<ShuffleVectorInst>(&move))
    return builder.CreateShuffleVector(bitsOf(shuffle->getOperand(0)),
                                       bitsOf(shuffle->getOperand(1)), shuffle->getShuffleMask());
  if (auto *select = dyn_cast<SelectInst>(&move))
    return builder.CreateSelect(select->getCondition(), bitsOf(select->getTrueValue()),
                                bitsOf(select->getFalseValue()));
  auto *call = dyn_cast<IntrinsicInst>(&move);
  if (call && call->getIntrinsicID() == Intrinsic::masked_load) {
    CallInst *bits = builder.CreateMaskedLoad(
        bitsType(call->getType()), call->getArgOperand(0), call->getParamAlign(0).valueOrOne(),
        call->getArgOperand(1), bitsOf(call->getArgOperand(2)));
    bits->setAAMetadata(call->getAAMetadata());
    return bits;
  }
  return nullptr;
}

PreservedAnalyses weft::IntegerBFloat16Pass::run(Function &function, FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &move : make_early_inc_range(instructions(function))) {
    if (!move.getType()->getScalarType()->isBFloatTy())
      continue;
    IRBuilder<> builder(&move);
    Value *bits = moveBits(builder, move);
    if (!bits)
      continue;
    move.replaceAllUsesWith(builder.CreateBitCast(bits, move.getType()));
    move.eraseFromParent();
    changed = true;
  }
  return changed ? PreservedAnalyses::allInSet<CFGAnalyses>() : PreservedAnalyses::all();
}
