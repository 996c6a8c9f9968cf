// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/RolledScan.h"
#include "compiler/Graph/Constraints.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weft;

namespace {

class ScanBuilder {
public:
  explicit ScanBuilder(const RepeatedSteps &steps)
      : steps(steps), builder(steps.ops.back()), loc(steps.at(0, 0)->getLoc()) {
    builder.setInsertionPointAfter(steps.ops.back());
  }

  void run();

private:
  using ResultOfStep = std::pair<unsigned, unsigned>; // op, result

  void addStates();
  void addSequences();
  void buildBody(ScanOp scan);
  Value sequenceOf(ElementOfSequence element);
  Value sequenceOf(const ConstantOfStep &constant);
  Value sequenceOf(const GatheredValues &gathered);
  void replaceStack(const StackedUse &use, Value output);
  void replaceSingly(ResultOfStep place, Value output);
  bool isNewest(unsigned state) const {
    return state >= steps.carried.size() || steps.carried[state].delay == 1;
  }
  std::optional<unsigned> stateOf(ResultOfStep place) const;
  Value reshaped(Value value, ArrayRef<int64_t> shape) {
    auto type = RankedTensorType::get(shape, tensorType(value).getElementType());
    return builder.createOrFold<ReshapeOp>(loc, type, value);
  }
  Value reversed(Value value) {
    return ReverseOp::create(builder, loc, value.getType(), value, ArrayRef<int64_t>{0});
  }
  RankedTensorType typeOf(ResultOfStep place) const {
    return tensorType(steps.at(0, place.first)->getResult(place.second));
  }

  const RepeatedSteps &steps;
  OpBuilder builder;
  Location loc;
  bool isReversed = false; ///< the scan goes from the end of its sequences to the front
  SmallVector<Value> inits, sequences;
  SmallVector<ResultOfStep> states, outputs;
};

} // namespace

void weft::rollIntoScan(const RepeatedSteps &steps) { ScanBuilder(steps).run(); }

void ScanBuilder::run() {
  isReversed = !steps.elements.empty() &&
               llvm::all_of(steps.elements, [](auto &element) { return element.advance < 0; });
  addStates();
  addSequences();
  llvm::SetVector<ResultOfStep> stacked;
  for (const StackedUse &use : steps.stacked)
    stacked.insert({use.op, use.result});
  stacked.insert_range(steps.single);
  for (unsigned number : llvm::seq(steps.period))
    if (isa<AssertOp>(steps.at(0, number)))
      stacked.insert({steps.sources[number][0].number, steps.sources[number][0].result});
  outputs = stacked.takeVector();
  int64_t length = steps.steps;
  SmallVector<Type> types;
  for (ResultOfStep state : states)
    types.push_back(typeOf(state));
  for (ResultOfStep output : outputs) {
    SmallVector<int64_t> shape{length};
    llvm::append_range(shape, typeOf(output).getShape());
    types.push_back(RankedTensorType::get(shape, typeOf(output).getElementType()));
  }
  auto scan = ScanOp::create(builder, loc, types, inits, sequences, steps.invariants.getArrayRef(),
                             length, isReversed);
  buildBody(scan);
  auto outputOf = [&](ResultOfStep place) {
    return scan.getStacked()[llvm::find(outputs, place) - outputs.begin()];
  };
  for (unsigned number : llvm::seq(steps.period))
    if (auto check = dyn_cast<AssertOp>(steps.at(0, number))) {
      const OperandSource &source = steps.sources[number][0];
      AssertOp::create(builder, check.getLoc(), outputOf({source.number, source.result}),
                       check.getMessage());
    }
  for (const StackedUse &use : steps.stacked)
    replaceStack(use, outputOf({use.op, use.result}));
  builder.setInsertionPointAfter(scan); // what stood after it may be gone
  for (ResultOfStep place : steps.single)
    replaceSingly(place, outputOf(place));
  for (ResultOfStep place : steps.last) {
    Value value = steps.at(steps.steps - 1, place.first)->getResult(place.second);
    value.replaceAllUsesWith(scan.getFinals()[*stateOf(place)]);
  }
  // Elements of sequences that are read elsewhere, too, are there without the steps.
  for (Operation *op : llvm::reverse(steps.ops))
    if (op->use_empty())
      op->erase();
}

std::optional<unsigned> ScanBuilder::stateOf(ResultOfStep place) const {
  for (unsigned state : llvm::seq<unsigned>(0, states.size()))
    if (states[state] == place && isNewest(state))
      return state;
  return std::nullopt;
}

/// A last value that no step reads is a state that begins as zeros.
void ScanBuilder::addStates() {
  for (const CarriedValue &value : steps.carried) {
    inits.push_back(value.init);
    states.push_back({value.op, value.result});
  }
  for (ResultOfStep place : steps.last) {
    if (stateOf(place))
      continue;
    RankedTensorType type = typeOf(place);
    Attribute zero = builder.getZeroAttr(type.getElementType());
    inits.push_back(ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, zero)));
    states.push_back(place);
  }
}

void ScanBuilder::addSequences() {
  for (const ElementOfSequence &element : steps.elements) {
    Value sequence = sequenceOf(element);
    sequences.push_back((element.advance < 0) == isReversed ? sequence : reversed(sequence));
  }
  for (const ConstantOfStep &constant : steps.constants) {
    Value sequence = sequenceOf(constant);
    sequences.push_back(isReversed ? reversed(sequence) : sequence);
  }
  for (const GatheredValues &gathered : steps.gathered) {
    Value sequence = sequenceOf(gathered);
    sequences.push_back(isReversed ? reversed(sequence) : sequence);
  }
}

/// (steps, ...), in the order in which the parts lie.
Value ScanBuilder::sequenceOf(ElementOfSequence element) {
  int64_t length = steps.steps, dim = element.dim, size = element.size();
  int64_t distance = std::abs(element.advance);
  SliceOp slice = element.first;
  Type elementType = slice.getType().getElementType();
  SmallVector<int64_t> start(slice.getStart()), limit(slice.getLimit()), stride(slice.getStride());
  SmallVector<int64_t> shape(slice.getType().getShape());
  start[dim] = std::min(start[dim], start[dim] + (length - 1) * element.advance);
  limit[dim] = start[dim] + (length - 1) * distance + size;
  stride[dim] = size == 1 ? distance : 1;
  shape[dim] = length * size;
  Value parts = builder.createOrFold<SliceOp>(loc, RankedTensorType::get(shape, elementType),
                                              slice.getOperand(), start, limit, stride);
  shape[dim] = size;
  shape.insert(shape.begin() + dim, length);
  parts = reshaped(parts, shape);
  if (dim > 0) {
    SmallVector<int64_t> perm{dim};
    for (int64_t other : llvm::seq<int64_t>(shape.size()))
      if (other != dim)
        perm.push_back(other);
    SmallVector<int64_t> moved;
    for (int64_t from : perm)
      moved.push_back(shape[from]);
    parts =
        TransposeOp::create(builder, loc, RankedTensorType::get(moved, elementType), parts, perm);
  }
  SmallVector<int64_t> stacked{length};
  llvm::append_range(stacked, element.type.getShape());
  return reshaped(parts, stacked);
}

/// A number for each step.
Value ScanBuilder::sequenceOf(const ConstantOfStep &constant) {
  auto type =
      RankedTensorType::get({static_cast<int64_t>(steps.steps)}, constant.type.getElementType());
  return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, constant.values));
}

/// Side by side along a new first dim.
Value ScanBuilder::sequenceOf(const GatheredValues &gathered) {
  SmallVector<int64_t> shape{1};
  llvm::append_range(shape, gathered.type.getShape());
  SmallVector<Value> rows;
  for (Value value : gathered.values)
    rows.push_back(reshaped(value, shape));
  shape[0] = steps.steps;
  auto type = RankedTensorType::get(shape, gathered.type.getElementType());
  return ConcatOp::create(builder, loc, type, rows, builder.getI64IntegerAttr(0));
}

void ScanBuilder::buildBody(ScanOp scan) {
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&scan.getBody());
  for (Type type : scan.getStepInputs())
    body->addArgument(type, loc);
  unsigned firstSequence = states.size();
  unsigned firstConstant = firstSequence + steps.elements.size();
  unsigned firstGathered = firstConstant + steps.constants.size();
  unsigned firstInvariant = firstGathered + steps.gathered.size();
  DenseMap<ResultOfStep, Value> computed;
  auto operandOf = [&](const OperandSource &source) -> Value {
    switch (source.kind) {
    case OperandSource::SameStep:
      return computed.lookup({source.number, source.result});
    case OperandSource::Carried:
      return body->getArgument(source.number);
    case OperandSource::Invariant: {
      ArrayRef<Value> all = steps.invariants.getArrayRef();
      return body->getArgument(firstInvariant + (llvm::find(all, source.value) - all.begin()));
    }
    case OperandSource::Constant:
      return builder.clone(*source.value.getDefiningOp())->getResult(0);
    case OperandSource::Element:
      return body->getArgument(firstSequence + source.number);
    case OperandSource::StepConstant:
      return BroadcastInDimOp::create(builder, loc, steps.constants[source.number].type,
                                      body->getArgument(firstConstant + source.number),
                                      ArrayRef<int64_t>());
    case OperandSource::Gathered:
      return body->getArgument(firstGathered + source.number);
    }
    llvm_unreachable("all kinds are handled");
  };
  for (unsigned number : llvm::seq(steps.period)) {
    if (auto element = steps.elementOps.find(number); element != steps.elementOps.end()) {
      computed[{number, 0}] = body->getArgument(firstSequence + element->second);
      continue;
    }
    Operation *op = steps.at(0, number);
    if (isa<AssertOp>(op)) // of all steps, after the scan
      continue;
    SmallVector<Value> operands;
    for (const OperandSource &source : steps.sources[number])
      operands.push_back(operandOf(source));
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    for (auto [result, value] : llvm::enumerate(copy->getResults()))
      computed[{number, static_cast<unsigned>(result)}] = value;
  }
  SmallVector<Value> yielded;
  for (auto [state, place] : llvm::enumerate(states))
    yielded.push_back(isNewest(state) ? computed.lookup(place)
                                      : body->getArgument(steps.carried[state].newer));
  for (ResultOfStep place : outputs)
    yielded.push_back(computed.lookup(place));
  YieldOp::create(builder, loc, yielded);
}

/// Parts of `output` in the place of what the steps computed, where that is read after them.
void ScanBuilder::replaceSingly(ResultOfStep place, Value output) {
  SmallVector<int64_t> limit(tensorType(output).getShape()), start(limit.size(), 0);
  SmallVector<int64_t> stride(limit.size(), 1);
  auto type = RankedTensorType::get(limit, tensorType(output).getElementType());
  for (unsigned step : llvm::seq(steps.steps)) {
    Value value = steps.at(step, place.first)->getResult(place.second);
    auto isOutside = [&](OpOperand &use) { return !steps.contains(use.getOwner()); };
    if (llvm::none_of(value.getUses(), isOutside))
      continue;
    start[0] = isReversed ? steps.steps - 1 - step : step;
    limit[0] = start[0] + 1;
    SmallVector<int64_t> shape(limit);
    shape[0] = 1;
    auto row = SliceOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()),
                               output, start, limit, stride);
    value.replaceUsesWithIf(reshaped(row, typeOf(place).getShape()), isOutside);
  }
}

/// `output` in the place of the parts of a concat: the parts stand side by side along its dim.
void ScanBuilder::replaceStack(const StackedUse &use, Value output) {
  auto concat = cast<ConcatOp>(use.concat);
  builder.setInsertionPoint(concat);
  int64_t dim = concat.getDim(), length = steps.steps;
  if (use.isReversed != isReversed)
    output = reversed(output);
  SmallVector<int64_t> part(tensorType(concat.getOperand(use.first)).getShape());
  SmallVector<int64_t> shape{length};
  llvm::append_range(shape, part);
  Value parts = reshaped(output, shape);
  if (dim > 0) {
    SmallVector<int64_t> perm = llvm::to_vector(llvm::seq<int64_t>(1, shape.size()));
    perm.insert(perm.begin() + dim, 0);
    auto moved = llvm::map_to_vector(perm, [&](int64_t from) { return shape[from]; });
    auto type = RankedTensorType::get(moved, tensorType(output).getElementType());
    parts = TransposeOp::create(builder, loc, type, parts, perm);
  }
  part[dim] *= length;
  Value side = reshaped(parts, part);
  SmallVector<Value> operands(concat.getOperands());
  operands.erase(operands.begin() + use.first, operands.begin() + use.first + steps.steps);
  operands.insert(operands.begin() + use.first, side);
  Value whole = operands.size() == 1 ? side
                                     : ConcatOp::create(builder, concat.getLoc(), concat.getType(),
                                                        operands, concat.getDimAttr())
                                           .getResult();
  auto former = llvm::to_vector(concat.getOperands());
  concat.getResult().replaceAllUsesWith(whole);
  concat.erase();
  for (Value value : former)
    if (auto reshape = value.getDefiningOp<ReshapeOp>();
        reshape && reshape->use_empty() && !steps.contains(reshape))
      reshape.erase();
}
