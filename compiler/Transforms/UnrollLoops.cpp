// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-unroll-loops: expects loops after weft-outline-scans, each with a step of its own;
// makes one function of several steps where these are small, so that fusion sees across them.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Graph/IterationStructure.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace weft {
#define GEN_PASS_DEF_UNROLLLOOPS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

/// Steps in one function, ops in it, and elements of its tensors, at most. What is saved of a step
/// is the loop around it, a store and a load of the state: of 64 elements a linear recurrence
/// is 1.05 to 1.12 times as fast, with a gradient 1.05 times; of 4096 elements it is level, with a
/// gradient slower (Xeon with AVX-512, one thread, 128 steps). Code of more ops is compiled for
/// longer than that is worth.
static constexpr int64_t mostSteps = 8, mostOps = 128, mostElements = 1024;

/// Whether fusion makes one kernel of such steps.
static bool isElementwise(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>())
    return true;
  std::optional<IterationStructure> structure = getIterationStructure(op);
  return structure &&
         (structure->kind == IterationKind::Map || structure->kind == IterationKind::View) &&
         structure->isExact();
}

static bool isSmall(Type type) {
  return cast<RankedTensorType>(type).getNumElements() <= mostElements;
}

/// Whether one state of the last of several steps is computed from all that they give: then a nest
/// of loops stores that on its way. Of other values each would be computed from the first step on.
static bool isChain(func::ReturnOp exit, unsigned carried) {
  Block *step = exit->getBlock();
  for (unsigned number : llvm::seq(carried)) {
    llvm::SmallDenseSet<Value> needed;
    SmallVector<Value> open{exit.getOperand(number)};
    while (!open.empty()) {
      Value value = open.pop_back_val();
      if (needed.insert(value).second && value.getDefiningOp())
        llvm::append_range(open, value.getDefiningOp()->getOperands());
    }
    bool all = llvm::all_of(exit.getOperands(), [&](Value value) {
      return isa<BlockArgument>(value) || needed.contains(value);
    });
    if (all && needed.contains(step->getArgument(number)))
      return true;
  }
  return false;
}

/// How many steps one function is to run; 1 for a loop that stays as it is.
static int64_t chooseFactor(LoopOp loop, func::FuncOp step) {
  int64_t length = loop.getLength(), ops = 0;
  for (Operation &op : step.front().without_terminator()) {
    if (!isElementwise(&op) || !llvm::all_of(op.getResultTypes(), isSmall))
      return 1;
    ++ops;
  }
  auto exit = cast<func::ReturnOp>(step.front().getTerminator());
  if (!isChain(exit, loop.getInits().size()))
    return 1;
  int64_t most = std::min({mostSteps, mostOps / std::max<int64_t>(ops, 1), length});
  if (most < 2)
    return 1;
  if (!loop->hasAttr(attr::countingSteps))
    for (int64_t factor = most; factor >= (most + 1) / 2; --factor)
      if (length % factor == 0)
        return factor;
  return most;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// `factor` steps one after another: (states, factor elements of each sequence, invariants) to
/// (states, factor outputs of each).
static func::FuncOp repeat(LoopOp loop, func::FuncOp step, int64_t factor) {
  OpBuilder builder(loop.getContext());
  auto type = builder.getFunctionType(loop.getStepInputs(), loop.getStepResults());
  auto repeated = func::FuncOp::create(step.getLoc(), step.getName(), type);
  repeated.setPrivate();
  repeated->setDiscardableAttrs(step->getDiscardableAttrDictionary());
  Block *body = repeated.addEntryBlock();
  size_t carried = loop.getInits().size(), read = loop.getSequences().size();
  // The argument of `repeated` that argument `number` of step `time` is; states are the first's.
  auto place = [&](size_t number, int64_t time) {
    if (number < carried)
      return number;
    if (number < carried + read)
      return carried + (number - carried) * factor + time;
    return number + read * (factor - 1);
  };
  for (size_t number : llvm::seq<size_t>(step.getNumArguments()))
    for (int64_t time : llvm::seq(factor))
      repeated.setArgAttrs(place(number, time), step.getArgAttrDict(number));

  builder.setInsertionPointToEnd(body);
  auto exit = cast<func::ReturnOp>(step.front().getTerminator());
  SmallVector<Value> states(body->getArguments().take_front(carried));
  SmallVector<SmallVector<Value>> outputs(exit.getNumOperands() - carried);
  for (int64_t time : llvm::seq(factor)) {
    IRMapping mapping;
    for (auto [number, argument] : llvm::enumerate(step.getArguments()))
      mapping.map(argument,
                  number < carried ? states[number] : body->getArgument(place(number, time)));
    for (Operation &op : step.front().without_terminator())
      builder.clone(op, mapping);
    for (auto [number, value] : llvm::enumerate(exit.getOperands())) {
      if (number < carried)
        states[number] = mapping.lookup(value);
      else
        outputs[number - carried].push_back(mapping.lookup(value));
    }
  }
  for (ArrayRef<Value> each : outputs)
    llvm::append_range(states, each);
  func::ReturnOp::create(builder, exit.getLoc(), states);
  return repeated;
}

static void unroll(LoopOp loop, func::FuncOp step, int64_t factor, SymbolTable &symbols) {
  loop.setFactor(factor);
  func::FuncOp repeated = repeat(loop, step, factor);
  loop.setStep(symbols.insert(repeated));
  // How many steps a call runs may not be known before it.
  if (loop.getLength() % factor == 0 && !loop->hasAttr(attr::countingSteps))
    return symbols.erase(step);
  loop.setRest(step.getName());
  SmallVector<Value> invariants(loop.getInvariants());
  loop.getRestInvariantsMutable().assign(invariants);
}

namespace {

struct UnrollLoops : weft::impl::UnrollLoopsBase<UnrollLoops> {
  using UnrollLoopsBase::UnrollLoopsBase;
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<LoopOp> loops;
    getOperation().walk([&](LoopOp loop) { loops.push_back(loop); });
    for (LoopOp loop : loops) {
      auto step = symbols.lookup<func::FuncOp>(loop.getStep());
      // A loop within would be in several steps, and its function is run by one.
      if (loop.getFactor() != 1 || !step.getOps<LoopOp>().empty())
        continue;
      int64_t chosen =
          factor ? std::min<int64_t>(factor, loop.getLength()) : chooseFactor(loop, step);
      if (chosen < 2)
        continue;
      unroll(loop, step, chosen, symbols);
      ++numUnrolled;
    }
  }
};

} // namespace
