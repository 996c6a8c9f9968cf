// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The derivative of a scan is a scan in the other direction, whose state is the cotangent of the
// state. Of the forward's steps it reads the states and the sums of contractions, which are saved;
// it computes everything else again.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/ReverseWalk.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weft;

namespace {

class ScanDerivative {
public:
  ScanDerivative(ScanOp scan, Cotangents &c)
      : scan(scan), c(c), builder(c.getBuilder()), carried(scan.getInits().size()),
        read(scan.getSequences().size()), walk(inner) {}

  LogicalResult run();

private:
  void saveForward();
  Value statesAhead(unsigned state, Value behind);
  void addInputs();
  LogicalResult buildBody(ScanOp backward);
  void giveResults(ScanOp backward);

  unsigned numOperands() const { return scan->getNumOperands(); }
  BlockArgument argument(unsigned number) { return scan.getStep().getArgument(number); }
  Value zeros(RankedTensorType type, OpBuilder &at) {
    Attribute zero = at.getZeroAttr(type.getElementType());
    return ConstantOp::create(at, scan.getLoc(), type, DenseElementsAttr::get(type, zero));
  }
  static RankedTensorType typeOf(Value value) { return tensorType(value); }
  RankedTensorType stackedType(Value value) {
    SmallVector<int64_t> shape{static_cast<int64_t>(scan.getLength())};
    llvm::append_range(shape, typeOf(value).getShape());
    return RankedTensorType::get(shape, typeOf(value).getElementType());
  }

  ScanOp scan;
  Cotangents &c;
  OpBuilder &builder;
  OpBuilder inner{scan.getContext()};
  unsigned carried, read;
  /// The reverse walk over the step, in the body of the backward.
  ReverseWalk walk;
  SmallVector<unsigned> states;         ///< the states that have a gradient
  SmallVector<unsigned> elements, same; ///< the sequences and invariants that want a gradient
  llvm::SetVector<Value> kept;          ///< values of the step that are saved, not computed again
  SmallVector<Value> inits, sequences;
  DenseMap<Value, Value> saved; ///< saved values, stacked over all steps, by the value in the step
};

} // namespace

/// The states through which a gradient passes: those that want one, and those that the step
/// computes from an active value.
static llvm::SmallDenseSet<unsigned> activeStates(ScanOp scan, Cotangents &c) {
  llvm::SmallDenseSet<unsigned> found;
  for (unsigned state : llvm::seq<unsigned>(scan.getInits().size()))
    if (c.wants(state))
      found.insert(state);
  OpBuilder none(scan.getContext());
  SmallVector<Operation *> ops;
  for (Operation &op : scan.getStep().without_terminator())
    ops.push_back(&op);
  while (true) {
    ReverseWalk walk(none);
    for (unsigned number : llvm::seq(scan->getNumOperands()))
      if (number < scan.getInits().size() ? found.contains(number) : c.wants(number))
        walk.activate(scan.getStep().getArgument(number));
    walk.activateResults(ops);
    size_t before = found.size();
    for (unsigned state : llvm::seq<unsigned>(scan.getInits().size()))
      if (walk.isActive(scan.getYielded()[state]))
        found.insert(state);
    if (found.size() == before)
      return found;
  }
}

/// A contraction, or the sum that is its only reader: no derivative of a sum reads its terms, so
/// that saving the sum makes it unnecessary to save the contraction or what is added to it.
static Value sumWith(Value contraction) {
  Value value = contraction;
  while (value.hasOneUse() && isa<AddOp, SubOp>(*value.user_begin()))
    value = value.user_begin()->getResult(0);
  return value;
}

LogicalResult ScanDerivative::run() {
  llvm::SmallDenseSet<unsigned> active = activeStates(scan, c);
  for (unsigned number : llvm::seq(numOperands())) {
    // An op that was removed from the step may leave an operand that no step reads.
    bool wanted = c.wants(number) && !argument(number).use_empty();
    if (number < carried ? active.contains(number) : wanted)
      (number < carried ? states : number < carried + read ? elements : same).push_back(number);
  }
  for (auto dot : scan.getStep().getOps<DotGeneralOp>())
    kept.insert(sumWith(dot));
  saveForward();
  addInputs();
  SmallVector<Type> types;
  for (Value init : inits)
    types.push_back(init.getType());
  for (unsigned number : elements)
    types.push_back(stackedType(argument(number)));
  auto backward = ScanOp::create(builder, scan.getLoc(), types, inits, sequences,
                                 scan.getInvariants(), scan.getLength(), !scan.getReverse());
  if (failed(buildBody(backward)))
    return failure();
  giveResults(backward);
  return success();
}

/// Replaces the scan by one that also gives what its derivative reads. The old scan is left without
/// uses.
void ScanDerivative::saveForward() {
  OpBuilder before(scan);
  SmallVector<Value> outputs;
  for (unsigned state : llvm::seq(carried))
    if (!argument(state).use_empty())
      outputs.push_back(scan.getYielded()[state]);
  for (Value value : kept)
    if (!llvm::is_contained(outputs, value))
      outputs.push_back(value);
  SmallVector<Type> types(scan.getResultTypes());
  for (Value output : outputs)
    types.push_back(stackedType(output));
  auto saving = ScanOp::create(before, scan.getLoc(), types, scan.getInits(), scan.getSequences(),
                               scan.getInvariants(), scan.getLength(), scan.getReverse());
  IRMapping mapping;
  scan.getBody().cloneInto(&saving.getBody(), mapping);
  Operation *yield = saving.getStep().getTerminator();
  SmallVector<Value> yielded(yield->getOperands());
  for (Value output : outputs)
    yielded.push_back(mapping.lookup(output));
  yield->setOperands(yielded);
  for (auto [output, result] :
       llvm::zip_equal(outputs, saving.getResults().drop_front(scan.getNumResults())))
    saved[output] = result;
  scan->replaceAllUsesWith(saving.getResults().take_front(scan.getNumResults()));
}

/// The states before all steps, of shape (length, ...), from `behind`, the states after them.
Value ScanDerivative::statesAhead(unsigned state, Value behind) {
  RankedTensorType type = tensorType(behind);
  int64_t length = scan.getLength();
  SmallVector<int64_t> start(type.getRank(), 0), limit(type.getShape()), one(type.getShape());
  SmallVector<int64_t> stride(type.getRank(), 1);
  one[0] = 1;
  Value init = c.reshape(scan.getInits()[state], one);
  if (length == 1)
    return init;
  (scan.getReverse() ? start : limit)[0] += scan.getReverse() ? 1 : -1;
  Value others = c.slice(behind, start, limit, stride);
  SmallVector<Value> parts{init, others};
  if (scan.getReverse())
    std::swap(parts[0], parts[1]);
  return ConcatOp::create(builder, scan.getLoc(), type, parts, 0);
}

/// The carried values are the cotangents of the last states, followed by the sums for invariants.
/// The sequences are the states before the steps, the scan's sequences, the saved values and the
/// cotangents of outputs.
void ScanDerivative::addInputs() {
  for (unsigned state : states)
    inits.push_back(c.of(state) ? c.of(state) : zeros(typeOf(argument(state)), builder));
  for (unsigned number : same)
    inits.push_back(zeros(typeOf(argument(number)), builder));
  for (unsigned state : llvm::seq(carried))
    if (Value behind = saved.lookup(scan.getYielded()[state]);
        behind && !argument(state).use_empty())
      sequences.push_back(statesAhead(state, behind));
  llvm::append_range(sequences, scan.getSequences());
  for (Value value : kept)
    sequences.push_back(saved.lookup(value));
  for (unsigned number : llvm::seq<unsigned>(carried, scan.getNumResults()))
    if (c.of(number))
      sequences.push_back(c.of(number));
}

LogicalResult ScanDerivative::buildBody(ScanOp backward) {
  Block *body = inner.createBlock(&backward.getBody());
  for (Type type : backward.getStepInputs())
    body->addArgument(type, scan.getLoc());
  inner.setInsertionPointToEnd(body);
  auto next = body->args_begin();
  SmallVector<Value> ofStates, sums;
  for (size_t i = 0; i < states.size(); ++i)
    ofStates.push_back(*next++);
  for (size_t i = 0; i < same.size(); ++i)
    sums.push_back(*next++);
  IRMapping mapping;
  for (unsigned state : llvm::seq(carried))
    if (!argument(state).use_empty())
      mapping.map(argument(state), *next++);
  for (unsigned number : llvm::seq(carried, carried + read))
    mapping.map(argument(number), *next++);
  DenseMap<Value, Value> known;
  for (Value value : kept)
    known[value] = *next++;
  SmallVector<std::pair<unsigned, Value>> ofOutputs;
  for (unsigned number : llvm::seq<unsigned>(carried, scan.getNumResults()))
    if (c.of(number))
      ofOutputs.push_back({number, *next++});
  for (unsigned number : llvm::seq(carried + read, numOperands()))
    mapping.map(argument(number), *next++);

  SmallVector<Operation *> forward;
  for (Operation &op : scan.getStep().without_terminator()) {
    forward.push_back(inner.clone(op, mapping));
    // A known value is read and not computed; its cotangent is that of the op's result.
    if (op.getNumResults() == 1)
      if (Value value = known.lookup(op.getResult(0))) {
        walk.alias(value, forward.back()->getResult(0));
        mapping.map(op.getResult(0), value);
      }
  }
  for (ArrayRef<unsigned> numbers : {ArrayRef(states), ArrayRef(elements), ArrayRef(same)})
    for (unsigned number : numbers)
      if (Value value = mapping.lookupOrNull(argument(number)))
        walk.activate(value);
  walk.activateResults(forward);
  for (auto [state, cotangent] : llvm::zip_equal(states, ofStates))
    walk.accumulate(mapping.lookupOrDefault(scan.getYielded()[state]), cotangent);
  for (auto [number, cotangent] : ofOutputs)
    walk.accumulate(mapping.lookup(scan.getYielded()[number]), cotangent);
  if (failed(walk.run(forward)))
    return failure();

  SmallVector<Value> yielded;
  auto cotangentOf = [&](unsigned number) {
    Value value = mapping.lookupOrNull(argument(number));
    return value ? walk.cotangentOf(value) : Value();
  };
  auto cotangentOrZeros = [&](unsigned number) {
    Value cotangent = cotangentOf(number);
    return cotangent ? cotangent : zeros(typeOf(argument(number)), inner);
  };
  for (unsigned state : states)
    yielded.push_back(cotangentOrZeros(state));
  for (auto [number, sum] : llvm::zip_equal(same, sums)) {
    Value term = cotangentOf(number);
    yielded.push_back(term ? AddOp::create(inner, scan.getLoc(), sum, term).getResult() : sum);
  }
  for (unsigned number : elements)
    yielded.push_back(cotangentOrZeros(number));
  YieldOp::create(inner, scan.getLoc(), yielded);
  return walk.decomposeRepeated();
}

void ScanDerivative::giveResults(ScanOp backward) {
  unsigned next = 0;
  for (ArrayRef<unsigned> numbers : {ArrayRef(states), ArrayRef(same), ArrayRef(elements)})
    for (unsigned number : numbers)
      c.give(number, backward.getResult(next++));
}

void weft::deriveScan(MLIRContext *context) {
  derive<ScanOp, +[](ScanOp scan, Cotangents &c) { return ScanDerivative(scan, c).run(); }>(
      context);
}
