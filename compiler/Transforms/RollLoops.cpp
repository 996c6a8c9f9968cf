// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-roll-loops: finds the steps of a loop that was unrolled when a program was traced,
// and makes a scan of them. Expects the graph as it was traced, so that all steps have the same ops
// in the same order.
#include "compiler/Graph/OpCost.h"
#include "compiler/Graph/OpStructure.h"
#include "compiler/Transforms/FlattenedConcats.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/RolledScan.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
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

/// The ops of a block but constants and draws, and for each the number of its kind.
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
    flattenConcats(getOperation().front());
    while (rollOne(getOperation().front()))
      ++numRolled;
  }

private:
  bool rollOne(Block &block);
  bool rollAny(const Sequence &sequence, const Repeat &repeat, bool readSingly);
  bool isWorthwhile(ArrayRef<Operation *> step, size_t steps) const;
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

/// Ops with effects but asserts, ops with regions, and the terminator are of kinds of their own.
/// Asserts of steps move after them and all draws: a call that fails puts the generator back.
Sequence::Sequence(Block &block) {
  DenseMap<Attribute, size_t> known;
  for (Operation &op : block) {
    if (isa<ConstantOp>(op) || isDraw(&op))
      continue;
    bool mayRepeat = (isMemoryEffectFree(&op) || isa<AssertOp>(op)) && op.getNumRegions() == 0 &&
                     !op.hasTrait<OpTrait::IsTerminator>();
    size_t next = ops.size();
    kinds.push_back(mayRepeat ? known.try_emplace(kindOf(&op), next).first->second : next);
    ops.push_back(&op);
  }
}

/// Distances from ops to the next ones of their kind, the most frequent first: what a step does
/// several times is as far from itself as a step is long, too.
SmallVector<size_t> Sequence::periods() const {
  constexpr size_t most = 32, mostInStep = 12;
  DenseMap<size_t, SmallVector<size_t>> known; // positions by kind
  llvm::MapVector<size_t, size_t> counts;
  for (auto [position, kind] : llvm::enumerate(kinds)) {
    SmallVector<size_t> &before = known[kind];
    for (size_t other : ArrayRef(before).take_back(mostInStep))
      ++counts[position - other];
    before.push_back(position);
  }
  auto ordered = counts.takeVector();
  llvm::stable_sort(ordered, [](auto &a, auto &b) {
    return std::tuple(b.second, a.first) < std::tuple(a.second, b.first);
  });
  ordered.resize(std::min(ordered.size(), most));
  return llvm::map_to_vector(ordered, [](auto &entry) { return entry.first; });
}

/// Repeats that cover the most ops come first; among equals, those of the shortest steps.
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

static bool movesElements(Operation *op) { return placementOf(op).moved; }

/// Whether a loop pays: kernels of elementwise ops are fused across steps, where a loop stores and
/// loads each state, and what only moves elements costs nothing where it is. Of few elements that
/// is no matter, and of many ops compilation takes too long.
bool RollLoops::isWorthwhile(ArrayRef<Operation *> step, size_t steps) const {
  constexpr size_t manySteps = 64, manyOps = 1024;
  constexpr int64_t fewElements = 1024;
  auto isFused = [](Operation *op) { return isPointwise(op) || movesElements(op); };
  if (llvm::all_of(step, movesElements))
    return false;
  if (!llvm::all_of(step, isFused))
    return true;
  bool isSmall = llvm::all_of(step, [&](Operation *op) {
    return llvm::all_of(op->getResultTypes(), [&](Type type) {
      return cast<RankedTensorType>(type).getNumElements() <= fewElements;
    });
  });
  return steps >= manySteps && (isSmall || steps * step.size() > manyOps);
}

/// Tries all places where the first step may begin, and to leave out the first or the last step,
/// which may be others than the rest, or all but the longest run of like ones. Of the places that
/// will do, takes the one that carries the fewest values.
bool RollLoops::rollAny(const Sequence &sequence, const Repeat &repeat, bool readSingly) {
  std::optional<RepeatedSteps> best;
  size_t fewest = std::max<size_t>(fewestSteps, 2);
  auto weight = [](const RepeatedSteps &steps) {
    return std::pair(steps.single.size(), steps.carried.size());
  };
  auto attempt = [&](size_t first, size_t steps) {
    auto ops = ArrayRef(sequence.ops).slice(first, steps * repeat.period);
    RepeatedSteps candidate(ops, steps);
    std::string why = candidate.analyze(readSingly);
    if (!why.empty())
      LLVM_DEBUG(llvm::dbgs() << steps << " steps of " << repeat.period << " ops from "
                              << ops.front()->getLoc() << " on stay unrolled: " << why << "\n");
    else if (!best || weight(candidate) < weight(*best))
      best = std::move(candidate);
  };
  auto step = ArrayRef(sequence.ops).slice(repeat.first, repeat.period);
  for (auto [early, late] : {std::pair(0, 0), std::pair(1, 0), std::pair(0, 1), std::pair(1, 1)}) {
    size_t steps = repeat.steps - early - late;
    if (repeat.steps < fewest + early + late || !isWorthwhile(step, steps))
      break;
    for (size_t shift = 0; shift <= repeat.spare; ++shift)
      attempt(repeat.first + shift + early * repeat.period, steps);
    if (best)
      break;
  }
  for (size_t shift = 0; shift <= repeat.spare && !best; ++shift) {
    size_t begin = repeat.first + shift;
    auto ops = ArrayRef(sequence.ops).slice(begin, repeat.steps * repeat.period);
    auto [first, steps] = RepeatedSteps(ops, repeat.steps).longestRun();
    // A first step reads initial states instead of results, and looks unlike the others.
    for (unsigned early : {first > 0 ? 1u : 0u, 0u})
      if (!best && steps + early >= fewest && steps + early < repeat.steps &&
          isWorthwhile(step, steps))
        attempt(begin + (first - early) * repeat.period, steps + early);
  }
  if (!best)
    return false;
  rollIntoScan(*best);
  return true;
}

/// What single steps compute is read after them only where there is no other way.
bool RollLoops::rollOne(Block &block) {
  constexpr size_t mostAttempts = 32;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  Sequence sequence(block);
  SmallVector<Repeat> repeats = sequence.findRepeats(std::max<size_t>(fewestSteps, 2));
  repeats.resize(std::min(repeats.size(), mostAttempts));
  auto roll = [&](bool readSingly) {
    return llvm::any_of(
        repeats, [&](const Repeat &repeat) { return rollAny(sequence, repeat, readSingly); });
  };
  return roll(false) || roll(true);
}
