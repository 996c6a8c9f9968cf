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

static bool isBFloat(const Value *value) { return value->getType()->getScalarType()->isBFloatTy(); }

static Value *bitsOf(IRBuilder<> &builder, Value *value) {
  return builder.CreateBitCast(value, bitsType(value->getType()));
}

/// Stores the bits of a bf16 number or vector, if `instruction` stores one.
static bool storeBits(Instruction &instruction) {
  IRBuilder<> builder(&instruction);
  if (auto *store = dyn_cast<StoreInst>(&instruction)) {
    if (!isBFloat(store->getValueOperand()))
      return false;
    store->setOperand(0, bitsOf(builder, store->getValueOperand()));
    return true;
  }
  auto *masked = dyn_cast<IntrinsicInst>(&instruction);
  if (!masked || masked->getIntrinsicID() != Intrinsic::masked_store ||
      !isBFloat(masked->getArgOperand(0)))
    return false;
  CallInst *bits =
      builder.CreateMaskedStore(bitsOf(builder, masked->getArgOperand(0)), masked->getArgOperand(1),
                                masked->getParamAlign(1).valueOrOne(), masked->getArgOperand(2));
  bits->setAAMetadata(masked->getAAMetadata());
  masked->eraseFromParent();
  return true;
}

/// Which of several bf16 numbers a block is reached with.
static Value *chooseBits(IRBuilder<> &builder, PHINode &choice) {
  PHINode *bits = builder.CreatePHI(bitsType(choice.getType()), choice.getNumIncomingValues());
  for (auto [value, block] : zip(choice.incoming_values(), choice.blocks())) {
    IRBuilder<> ahead(block->getTerminator());
    int known = bits->getBasicBlockIndex(block);
    bits->addIncoming(known < 0 ? bitsOf(ahead, value) : bits->getIncomingValue(known), block);
  }
  return bits;
}

/// What only moves numbers and gives bf16, done with their bits; null if it is anything else.
static Value *moveBits(IRBuilder<> &builder, Instruction &move) {
  if (auto *load = dyn_cast<LoadInst>(&move)) {
    LoadInst *bits = builder.CreateAlignedLoad(bitsType(load->getType()), load->getPointerOperand(),
                                               load->getAlign(), load->isVolatile());
    bits->setAAMetadata(load->getAAMetadata());
    return bits;
  }
  if (auto *element = dyn_cast<ExtractElementInst>(&move))
    return builder.CreateExtractElement(bitsOf(builder, element->getVectorOperand()),
                                        element->getIndexOperand());
  if (auto *inserted = dyn_cast<InsertElementInst>(&move))
    return builder.CreateInsertElement(bitsOf(builder, inserted->getOperand(0)),
                                       bitsOf(builder, inserted->getOperand(1)),
                                       inserted->getOperand(2));
  if (auto *shuffle = dyn_cast<ShuffleVectorInst>(&move))
    return builder.CreateShuffleVector(bitsOf(builder, shuffle->getOperand(0)),
                                       bitsOf(builder, shuffle->getOperand(1)),
                                       shuffle->getShuffleMask());
  if (auto *select = dyn_cast<SelectInst>(&move))
    return builder.CreateSelect(select->getCondition(), bitsOf(builder, select->getTrueValue()),
                                bitsOf(builder, select->getFalseValue()));
  if (auto *choice = dyn_cast<PHINode>(&move))
    return chooseBits(builder, *choice);
  auto *call = dyn_cast<IntrinsicInst>(&move);
  if (call && call->getIntrinsicID() == Intrinsic::masked_load) {
    CallInst *bits = builder.CreateMaskedLoad(
        bitsType(call->getType()), call->getArgOperand(0), call->getParamAlign(0).valueOrOne(),
        call->getArgOperand(1), bitsOf(builder, call->getArgOperand(2)));
    bits->setAAMetadata(call->getAAMetadata());
    return bits;
  }
  return nullptr;
}

PreservedAnalyses weft::IntegerBFloat16Pass::run(Function &function, FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &move : make_early_inc_range(instructions(function))) {
    if (!isBFloat(&move)) {
      changed |= storeBits(move);
      continue;
    }
    IRBuilder<> builder(&move);
    Value *bits = moveBits(builder, move);
    if (!bits)
      continue;
    if (isa<PHINode>(move))
      builder.SetInsertPoint(move.getParent(), move.getParent()->getFirstInsertionPt());
    move.replaceAllUsesWith(builder.CreateBitCast(bits, move.getType()));
    move.eraseFromParent();
    changed = true;
  }
  return changed ? PreservedAnalyses::allInSet<CFGAnalyses>() : PreservedAnalyses::all();
}
