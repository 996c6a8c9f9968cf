// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-roll-loops: finds the steps of a loop that was unrolled when a program was traced,
// and makes a scan of them. Expects the graph as it was traced, so that all steps have the same ops
// in the same order.
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/RolledScan.h"
#include "llvm/ADT/MapVector.h"

#define DEBUG_TYPE "weft-roll-loops"

namespace weft {
#define GEN_PASS_DEF_ROLLLOOPS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

/// Ops of a block that may be steps: `steps` times `period` of them from `first` on. The ones that
/// follow, `spare`, begin another step, so that the first step may begin as much later.
struct Repeat {
  size_t first, period, steps, spare;

  size_t length() const { return period * steps; }
};

/// The ops of a block but constants, and for each the number of its kind.
struct Sequence {
  explicit Sequence(Block &block);

  SmallVector<Repeat> findRepeats(size_t fewestSteps) const;

  SmallVector<Operation *> ops;
  SmallVector<size_t> kinds;

private:
  SmallVector<size_t> periods() const;
};

struct RollLoops : weft::impl::RollLoopsBase<RollLoops> {
  using RollLoopsBase::RollLoopsBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    while (rollOne(getOperation().front()))
      ++numRolled;
  }

private:
  bool rollOne(Block &block);
  bool rollAny(const Sequence &sequence, const Repeat &repeat);
};

} // namespace

//===----------------------------------------------------------------------===//
// Repeated ops
//===----------------------------------------------------------------------===//

/// What two ops have in common that do the same at different steps: slices may begin elsewhere.
static Attribute kindOf(Operation *op) {
  Builder builder(op->getContext());
  NamedAttrList attributes(op->getAttrDictionary());
  if (isa<SliceOp>(op)) {
    attributes.erase("start");
    attributes.erase("limit");
  }
  auto types = [&](TypeRange range) { return builder.getTypeArrayAttr(SmallVector<Type>(range)); };
  return builder.getArrayAttr({builder.getStringAttr(op->getName().getStringRef()),
                               attributes.getDictionary(op->getContext()),
                               types(op->getOperandTypes()), types(op->getResultTypes())});
}

/// Ops with effects or regions, and the terminator, are of kinds of their own.
Sequence::Sequence(Block &block) {
  DenseMap<Attribute, size_t> known;
  for (Operation &op : block) {
    if (isa<ConstantOp>(op))
      continue;
    bool mayRepeat =
        isMemoryEffectFree(&op) && op.getNumRegions() == 0 && !op.hasTrait<OpTrait::IsTerminator>();
    size_t next = ops.size();
    kinds.push_back(mayRepeat ? known.try_emplace(kindOf(&op), next).first->second : next);
    ops.push_back(&op);
  }
}

/// Distances from ops to the next of their kind, the most frequent first.
SmallVector<size_t> Sequence::periods() const {
  constexpr size_t most = 32;
  DenseMap<size_t, size_t> latest; // by kind
  llvm::MapVector<size_t, size_t> counts;
  for (auto [position, kind] : llvm::enumerate(kinds)) {
    auto [before, isFirst] = latest.try_emplace(kind, position);
    if (!isFirst)
      ++counts[position - before->second];
    before->second = position;
  }
  auto ordered = counts.takeVector();
  llvm::stable_sort(ordered, [](auto &a, auto &b) { return a.second > b.second; });
  ordered.resize(std::min(ordered.size(), most));
  return llvm::map_to_vector(ordered, [](auto &entry) { return entry.first; });
}

/// Those of the most ops first, and of them the shortest steps.
SmallVector<Repeat> Sequence::findRepeats(size_t fewestSteps) const {
  SmallVector<Repeat> found;
  for (size_t period : periods()) {
    size_t first = 0;
    for (size_t position = 0; position + period <= kinds.size(); ++position) {
      bool goesOn = position + period < kinds.size() && kinds[position] == kinds[position + period];
      if (goesOn)
        continue;
      size_t length = position - first + period;
      if (length / period >= fewestSteps)
        found.push_back({first, period, length / period, length % period});
      first = position + 1;
    }
  }
  llvm::stable_sort(found, [](const Repeat &a, const Repeat &b) {
    return std::tuple(b.length(), a.period) < std::tuple(a.length(), b.period);
  });
  return found;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Whether a loop pays: kernels of elementwise ops would be fused across a few steps.
static bool isWorthwhile(ArrayRef<Operation *> step, size_t steps) {
  constexpr size_t many = 64;
  auto isFused = [](Operation *op) {
    return op->hasTrait<OpTrait::Elementwise>() ||
           isa<BroadcastInDimOp, ConcatOp, GeluOp, PadOp, ReshapeOp, SiluOp, SliceOp, TransposeOp>(
               op);
  };
  return steps >= many || !llvm::all_of(step, isFused);
}

/// Tries all places where the first step may begin, and to leave out the first or the last step,
/// which may be others than the rest. Of the places that will do, takes the one that carries the
/// fewest values.
bool RollLoops::rollAny(const Sequence &sequence, const Repeat &repeat) {
  std::optional<RepeatedSteps> best;
  for (auto [early, late] : {std::pair(0, 0), std::pair(1, 0), std::pair(0, 1), std::pair(1, 1)}) {
    size_t steps = repeat.steps - early - late;
    if (steps < std::max<size_t>(fewestSteps, 2))
      continue;
    for (size_t shift = 0; shift <= repeat.spare; ++shift) {
      size_t first = repeat.first + shift + early * repeat.period;
      auto ops = ArrayRef(sequence.ops).slice(first, steps * repeat.period);
      if (!isWorthwhile(ops.take_front(repeat.period), steps))
        return false;
      RepeatedSteps candidate(ops, steps);
      std::string why = candidate.analyze();
      if (!why.empty())
        LLVM_DEBUG(llvm::dbgs() << steps << " steps of " << repeat.period << " ops from "
                                << ops.front()->getLoc() << " on stay unrolled: " << why << "\n");
      else if (!best || candidate.carried.size() < best->carried.size())
        best = std::move(candidate);
    }
    if (best)
      break;
  }
  if (!best)
    return false;
  rollIntoScan(*best);
  return true;
}

bool RollLoops::rollOne(Block &block) {
  constexpr size_t mostAttempts = 16;
  Sequence sequence(block);
  SmallVector<Repeat> repeats = sequence.findRepeats(fewestSteps);
  repeats.resize(std::min(repeats.size(), mostAttempts));
  return llvm::any_of(repeats, [&](const Repeat &repeat) { return rollAny(sequence, repeat); });
}
