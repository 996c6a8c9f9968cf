// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Driver/OneLaneStores.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

/// The only lane that may be set in `mask`, or none.
static std::optional<unsigned> onlyLaneOf(const Value *mask) {
  auto *constant = dyn_cast<Constant>(mask);
  auto *type = dyn_cast<FixedVectorType>(mask->getType());
  if (!constant || !type)
    return std::nullopt;
  std::optional<unsigned> only;
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    Constant *bit = constant->getAggregateElement(lane);
    if (!bit)
      return std::nullopt;
    if (bit->isZeroValue())
      continue;
    if (only || !bit->isOneValue())
      return std::nullopt;
    only = lane;
  }
  return only;
}

static void storeLane(IntrinsicInst &store, unsigned lane) {
  IRBuilder<> builder(&store);
  Value *vector = store.getArgOperand(0), *base = store.getArgOperand(1);
  Type *element = vector->getType()->getScalarType();
  Value *address = lane ? builder.CreateConstInBoundsGEP1_64(element, base, lane) : base;
  Align known = store.getParamAlign(1).valueOrOne();
  uint64_t offset = lane * store.getDataLayout().getTypeStoreSize(element).getFixedValue();
  StoreInst *scalar =
      builder.CreateAlignedStore(builder.CreateExtractElement(vector, uint64_t(lane)), address,
                                 commonAlignment(known, offset));
  scalar->setAAMetadata(store.getAAMetadata());
  store.eraseFromParent();
}

PreservedAnalyses weft::OneLaneStoresPass::run(Function &function, FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    auto *intrinsic = dyn_cast<IntrinsicInst>(&instruction);
    if (!intrinsic || intrinsic->getIntrinsicID() != Intrinsic::masked_store)
      continue;
    if (std::optional<unsigned> lane = onlyLaneOf(intrinsic->getArgOperand(2))) {
      storeLane(*intrinsic, *lane);
      changed = true;
    }
  }
  return changed ? PreservedAnalyses::allInSet<CFGAnalyses>() : PreservedAnalyses::all();
}
