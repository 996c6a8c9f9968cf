// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Driver/NarrowMaskedAccesses.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

static constexpr unsigned registerBits = 256; // of AVX2
static constexpr unsigned mostSteps = 8;      // from a mask to the constants in it

/// The lanes of a mask that are known to be off.
static BitVector lanesOff(const Value *mask, unsigned steps = mostSteps) {
  BitVector off(cast<FixedVectorType>(mask->getType())->getNumElements());
  if (auto *constant = dyn_cast<Constant>(mask)) {
    for (unsigned lane = 0; lane < off.size(); ++lane)
      if (Constant *bit = constant->getAggregateElement(lane))
        off[lane] = bit->isZeroValue();
    return off;
  }
  auto *instruction = dyn_cast<Instruction>(mask);
  if (!instruction || steps == 0)
    return off;
  auto offOf = [&](unsigned operand) {
    return lanesOff(instruction->getOperand(operand), steps - 1);
  };
  switch (instruction->getOpcode()) {
  case Instruction::And:
    return offOf(0) |= offOf(1);
  case Instruction::Or:
    return offOf(0) &= offOf(1);
  case Instruction::Select: {
    BitVector first = offOf(1);
    if (instruction->getOperand(0)->getType()->isVectorTy())
      first |= offOf(0); // these lanes are the last operand's
    return first &= offOf(2);
  }
  case Instruction::ShuffleVector: {
    BitVector first = offOf(0), second = offOf(1);
    for (auto [lane, from] : enumerate(cast<ShuffleVectorInst>(instruction)->getShuffleMask()))
      if (from >= 0)
        off[lane] = unsigned(from) < first.size() ? first[from] : second[from - first.size()];
    return off;
  }
  default:
    return off;
  }
}

namespace {

/// A masked load or store in parts.
class Parts {
public:
  explicit Parts(IntrinsicInst &access)
      : builder(&access), access(access), isLoad(access.getIntrinsicID() == Intrinsic::masked_load),
        pointer(access.getArgOperand(isLoad ? 0 : 1)), mask(access.getArgOperand(isLoad ? 1 : 2)),
        vector(access.getArgOperand(isLoad ? 2 : 0)),
        alignment(access.getParamAlign(isLoad ? 0 : 1).valueOrOne()), off(lanesOff(mask)) {
    Type *element = vector->getType()->getScalarType();
    elementBytes = access.getDataLayout().getTypeStoreSize(element).getFixedValue();
    lanesOfRegister = std::max<unsigned>(1, registerBits / 8 / elementBytes);
  }

  bool areDue() const { return isDue(0, off.size()); }

  void emit() {
    Value *loaded = emit(0, off.size());
    if (isLoad)
      access.replaceAllUsesWith(loaded);
    access.eraseFromParent();
  }

private:
  /// Whether a whole register among these lanes is off.
  bool isDue(unsigned begin, unsigned end) const {
    if (end - begin <= lanesOfRegister)
      return isOff(begin, end);
    unsigned middle = begin + (end - begin) / 2;
    return isDue(begin, middle) || isDue(middle, end);
  }

  bool isOff(unsigned begin, unsigned end) const {
    return all_of(seq(begin, end), [&](unsigned lane) { return off[lane]; });
  }

  Value *lanes(Value *of, unsigned begin, unsigned end) {
    auto numbers = to_vector(seq<int>(int(begin), int(end)));
    return builder.CreateShuffleVector(of, numbers);
  }

  /// The elements loaded; null of a store.
  Value *emit(unsigned begin, unsigned end) {
    if (isOff(begin, end))
      return isLoad ? lanes(vector, begin, end) : nullptr;
    if (isDue(begin, end)) {
      unsigned middle = begin + (end - begin) / 2;
      Value *first = emit(begin, middle), *second = emit(middle, end);
      return isLoad
                 ? builder.CreateShuffleVector(first, second, to_vector(seq<int>(0, end - begin)))
                 : nullptr;
    }
    Value *part = lanes(vector, begin, end), *on = lanes(mask, begin, end);
    Type *element = vector->getType()->getScalarType();
    Value *address = builder.CreateConstGEP1_64(element, pointer, begin);
    Align known = commonAlignment(alignment, begin * elementBytes);
    CallInst *made = isLoad ? builder.CreateMaskedLoad(part->getType(), address, known, on, part)
                            : builder.CreateMaskedStore(part, address, known, on);
    made->setAAMetadata(access.getAAMetadata());
    return isLoad ? made : nullptr;
  }

  IRBuilder<> builder;
  IntrinsicInst &access;
  bool isLoad;
  Value *pointer, *mask;
  Value *vector; ///< that is stored, or has what is loaded where the mask is off
  Align alignment;
  BitVector off;
  uint64_t elementBytes;
  unsigned lanesOfRegister;
};

} // namespace

PreservedAnalyses weft::NarrowMaskedAccessesPass::run(Function &function,
                                                      FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    auto *access = dyn_cast<IntrinsicInst>(&instruction);
    if (!access || (access->getIntrinsicID() != Intrinsic::masked_load &&
                    access->getIntrinsicID() != Intrinsic::masked_store))
      continue;
    auto *type = dyn_cast<FixedVectorType>(
        access->getArgOperand(access->getIntrinsicID() == Intrinsic::masked_load ? 2 : 0)
            ->getType());
    if (!type || !isPowerOf2_32(type->getNumElements()))
      continue;
    Parts parts(*access);
    if (parts.areDue()) {
      parts.emit();
      changed = true;
    }
  }
  return changed ? PreservedAnalyses::allInSet<CFGAnalyses>() : PreservedAnalyses::all();
}
