// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Canonical forms of weft.scan: what no step changes is an invariant, what nothing reads is not
// carried or stacked, and no value is passed twice.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Graph.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace weft;

namespace {

/// A scan under reconstruction: which of its operands and outputs stay.
class ScanRebuilder {
public:
  explicit ScanRebuilder(ScanOp scan)
      : scan(scan), carried(scan.getInits().size()), read(scan.getSequences().size()) {}

  /// Leaves no output that is another one, too. Returns whether there was one.
  bool mergeOutputs(PatternRewriter &rewriter);
  /// Null if there is nothing to change.
  ScanOp rebuild(PatternRewriter &rewriter);

private:
  BlockArgument argument(unsigned number) { return scan.getStep().getArgument(number); }
  Value yielded(unsigned number) { return scan.getYielded()[number]; }
  bool isUnchanged(unsigned state) { return yielded(state) == argument(state); }
  void findLive();
  unsigned operandLike(unsigned number);

  ScanOp scan;
  unsigned carried, read;
  llvm::SmallDenseSet<Value> live; ///< in the step
};

} // namespace

/// What live outputs and states need. A state is live if its last value is read, or if a live
/// value of the step depends on it.
void ScanRebuilder::findLive() {
  SmallVector<Value> pending;
  for (auto [number, result] : llvm::enumerate(scan.getResults()))
    if (!result.use_empty())
      pending.push_back(yielded(number));
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!live.insert(value).second)
      continue;
    if (Operation *op = value.getDefiningOp()) {
      llvm::append_range(pending, op->getOperands());
    } else if (unsigned number = cast<BlockArgument>(value).getArgNumber(); number < carried) {
      pending.push_back(yielded(number));
    }
  }
}

bool ScanRebuilder::mergeOutputs(PatternRewriter &rewriter) {
  bool merged = false;
  for (unsigned number : llvm::seq<unsigned>(carried, scan.getNumResults()))
    for (unsigned other : llvm::seq(carried, number))
      if (yielded(other) == yielded(number) && !scan.getResult(number).use_empty()) {
        rewriter.replaceAllUsesWith(scan.getResult(number), scan.getResult(other));
        merged = true;
      }
  return merged;
}

/// The first live operand of the same group with the same value, from a sequence on.
unsigned ScanRebuilder::operandLike(unsigned number) {
  unsigned first = number < carried + read ? carried : carried + read;
  for (unsigned other = first; other < number; ++other)
    if (live.contains(argument(other)) && scan->getOperand(other) == scan->getOperand(number))
      return other;
  return number;
}

ScanOp ScanRebuilder::rebuild(PatternRewriter &rewriter) {
  findLive();
  SmallVector<Value> inits, sequences, invariants;
  SmallVector<unsigned> carries, results, ofSequences, ofInvariants, unchanged;
  for (unsigned number : llvm::seq(carried)) {
    bool isRead = live.contains(argument(number)) || !scan.getResult(number).use_empty();
    if (isUnchanged(number))
      unchanged.push_back(number);
    else if (isRead)
      carries.push_back(number);
  }
  for (unsigned number : llvm::seq(carried, scan->getNumOperands()))
    if (live.contains(argument(number)) && operandLike(number) == number)
      (number < carried + read ? ofSequences : ofInvariants).push_back(number);
  for (unsigned number : llvm::seq<unsigned>(carried, scan.getNumResults()))
    if (!scan.getResult(number).use_empty())
      results.push_back(number);
  bool merges = llvm::any_of(llvm::seq(carried, scan->getNumOperands()), [&](unsigned number) {
    return live.contains(argument(number)) && operandLike(number) != number;
  });
  if (!merges && unchanged.empty() && carries.size() == carried && ofSequences.size() == read &&
      ofInvariants.size() == scan.getInvariants().size() &&
      results.size() == scan.getStacked().size())
    return {};

  auto operands = [&](ArrayRef<unsigned> numbers) {
    return llvm::map_to_vector(numbers, [&](unsigned number) { return scan->getOperand(number); });
  };
  SmallVector<unsigned> allInvariants(unchanged);
  llvm::append_range(allInvariants, ofInvariants);
  SmallVector<Type> types;
  for (unsigned number : llvm::concat<unsigned>(carries, results))
    types.push_back(scan.getResult(number).getType());
  auto made =
      ScanOp::create(rewriter, scan.getLoc(), types, operands(carries), operands(ofSequences),
                     operands(allInvariants), scan.getLength(), scan.getReverse());
  made->setDiscardableAttrs(scan->getDiscardableAttrDictionary());

  OpBuilder::InsertionGuard guard(rewriter);
  Block *step = rewriter.createBlock(&made.getBody());
  IRMapping mapping;
  for (unsigned number : llvm::concat<unsigned>(carries, ofSequences, allInvariants))
    mapping.map(argument(number),
                step->addArgument(argument(number).getType(), argument(number).getLoc()));
  for (unsigned number : llvm::seq(carried, scan->getNumOperands()))
    if (live.contains(argument(number)))
      mapping.map(argument(number), mapping.lookup(argument(operandLike(number))));
  rewriter.setInsertionPointToStart(step);
  for (Operation &op : scan.getStep().without_terminator())
    if (llvm::any_of(op.getResults(), [&](Value result) { return live.contains(result); }))
      rewriter.clone(op, mapping);
  SmallVector<Value> outputs;
  for (unsigned number : llvm::concat<unsigned>(carries, results))
    outputs.push_back(mapping.lookup(yielded(number)));
  YieldOp::create(rewriter, scan.getLoc(), outputs);

  for (auto [number, result] :
       llvm::zip_equal(llvm::concat<unsigned>(carries, results), made.getResults()))
    rewriter.replaceAllUsesWith(scan.getResult(number), result);
  for (unsigned number : unchanged)
    rewriter.replaceAllUsesWith(scan.getResult(number), scan.getInits()[number]);
  return made;
}

static LogicalResult simplifyScan(ScanOp scan, PatternRewriter &rewriter) {
  if (scan.use_empty())
    return rewriter.notifyMatchFailure(scan, "has no uses");
  if (ScanRebuilder(scan).mergeOutputs(rewriter))
    return success();
  if (!ScanRebuilder(scan).rebuild(rewriter))
    return rewriter.notifyMatchFailure(scan, "nothing in it is without use or passed twice");
  rewriter.eraseOp(scan);
  return success();
}

/// No step leaves the state as it is; one step is the ops of its body.
static LogicalResult unrollShortScan(ScanOp scan, PatternRewriter &rewriter) {
  if (scan.getLength() > 1)
    return rewriter.notifyMatchFailure(scan, "has several steps");
  Location loc = scan.getLoc();
  SmallVector<Value> results;
  if (scan.getLength() == 0) {
    llvm::append_range(results, scan.getInits());
    for (Type type : scan.getStacked().getTypes()) {
      auto tensor = cast<RankedTensorType>(type);
      Attribute none = rewriter.getZeroAttr(tensor.getElementType());
      results.push_back(
          ConstantOp::create(rewriter, loc, type, DenseElementsAttr::get(tensor, none)));
    }
    rewriter.replaceOp(scan, results);
    return success();
  }
  SmallVector<Value> inputs(scan.getInits());
  unsigned carried = inputs.size();
  for (auto [number, sequence] : llvm::enumerate(scan.getSequences()))
    inputs.push_back(ReshapeOp::create(
        rewriter, loc, scan.getStep().getArgument(carried + number).getType(), sequence));
  llvm::append_range(inputs, scan.getInvariants());
  IRMapping mapping;
  mapping.map(scan.getStep().getArguments(), inputs);
  for (Operation &op : scan.getStep().without_terminator())
    rewriter.clone(op, mapping);
  for (auto [value, type] : llvm::zip_equal(scan.getYielded(), scan.getResultTypes())) {
    Value result = mapping.lookup(value);
    results.push_back(result.getType() == type ? result
                                               : ReshapeOp::create(rewriter, loc, type, result));
  }
  rewriter.replaceOp(scan, results);
  return success();
}

static bool turnsSteps(Operation *op) {
  auto reverse = dyn_cast_or_null<ReverseOp>(op);
  return reverse && reverse.getDims() == ArrayRef<int64_t>{0};
}

/// Sequences that are all read from behind are read by a scan in the other direction, whose outputs
/// are turned instead: most often they are turned again.
static LogicalResult turnScan(ScanOp scan, PatternRewriter &rewriter) {
  OperandRange sequences = scan.getSequences();
  if (sequences.empty() ||
      !llvm::all_of(sequences, [](Value value) { return turnsSteps(value.getDefiningOp()); }))
    return rewriter.notifyMatchFailure(scan, "reads a sequence from its first element on");
  auto turned = llvm::map_to_vector(
      sequences, [](Value value) { return Value(value.getDefiningOp<ReverseOp>().getOperand()); });
  rewriter.modifyOpInPlace(scan, [&] {
    scan.getSequencesMutable().assign(turned);
    scan.setReverse(!scan.getReverse());
  });
  rewriter.setInsertionPointAfter(scan);
  for (Value stacked : scan.getStacked()) {
    Value inOrder;
    for (OpOperand &use : llvm::make_early_inc_range(stacked.getUses())) {
      Operation *user = use.getOwner();
      if (turnsSteps(user)) {
        rewriter.replaceOp(user, stacked);
        continue;
      }
      if (!inOrder)
        inOrder = ReverseOp::create(rewriter, scan.getLoc(), stacked, ArrayRef<int64_t>{0});
      rewriter.modifyOpInPlace(user, [&] { use.set(inOrder); });
    }
  }
  return success();
}

void ScanOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(simplifyScan);
  patterns.add(unrollShortScan);
  patterns.add(turnScan);
}
