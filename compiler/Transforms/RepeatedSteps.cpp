// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/RepeatedSteps.h"
#include "compiler/Graph/Constraints.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weft;

std::string RepeatedSteps::analyze(bool readSingly) {
  sources.resize(period);
  for (unsigned op : llvm::seq(period))
    for (unsigned operand : llvm::seq(at(0, op)->getNumOperands()))
      if (std::string why = classify(op, operand); !why.empty())
        return why;
  for (unsigned op : llvm::seq(period))
    if (isa<AssertOp>(at(0, op)) && sources[op][0].kind != OperandSource::SameStep)
      return "a check is of what its step does not compute";
  for (unsigned op : llvm::seq(period))
    for (unsigned result : llvm::seq(at(0, op)->getNumResults()))
      if (std::string why = classifyUses(op, result, readSingly); !why.empty())
        return why;
  return carried.empty() ? "no step reads what the one before it computed" : "";
}

std::optional<RepeatedSteps::Place> RepeatedSteps::placeOf(Value value) const {
  auto result = dyn_cast<OpResult>(value);
  auto found = result ? positions.find(result.getOwner()) : positions.end();
  if (found == positions.end())
    return std::nullopt;
  return Place{found->second / period, found->second % period, result.getResultNumber()};
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

std::string RepeatedSteps::classify(unsigned op, unsigned operand) {
  SmallVector<Value> values;
  for (unsigned step : llvm::seq(steps))
    values.push_back(at(step, op)->getOperand(operand));
  OperandSource source;
  if (sliceVaries(op)) {
    SmallVector<Value> slices;
    for (unsigned step : llvm::seq(steps))
      slices.push_back(at(step, op)->getResult(0));
    if (placeOf(values[0]) || !isElement(slices, source))
      return "a slice moves from step to step, but not along a sequence";
    elementOps[op] = source.number;
    sources[op].push_back(source);
    return "";
  }
  if (!isLater(values, source) && !isConstant(values, source)) {
    if (llvm::any_of(values, [&](Value value) { return placeOf(value).has_value(); }))
      return "a step reads more than the one before it computed";
    if (llvm::all_equal(values)) {
      invariants.insert(values[0]);
      source = {OperandSource::Invariant, 0, 0, values[0]};
    } else if (!isElement(values, source) && !isGathered(values, source)) {
      return "a value changes from step to step, and is no part of a sequence";
    }
  }
  sources[op].push_back(source);
  return "";
}

/// Whether the operand is computed by the same step or, but for the first ones, by one that is as
/// many steps before.
bool RepeatedSteps::isLater(ArrayRef<Value> values, OperandSource &source) {
  constexpr unsigned mostDelay = 16;
  unsigned delay = 0;
  while (delay < steps && delay <= mostDelay && !placeOf(values[delay]))
    ++delay;
  if (delay == steps || delay > mostDelay)
    return false;
  Place first = *placeOf(values[delay]);
  for (unsigned step : llvm::seq(delay, steps)) {
    std::optional<Place> place = placeOf(values[step]);
    if (!place || place->step + delay != step || place->op != first.op ||
        place->result != first.result)
      return false;
  }
  if (delay == 0) {
    source = {OperandSource::SameStep, first.op, first.result, Value()};
    return true;
  }
  unsigned number = 0;
  for (unsigned age : llvm::seq_inclusive(1u, delay)) {
    CarriedValue value{first.op, first.result, age, number, values[delay - age]};
    auto *known = llvm::find(carried, value);
    number = known - carried.begin();
    if (known == carried.end())
      carried.push_back(value);
  }
  source = {OperandSource::Carried, number, 0, Value()};
  return true;
}

/// Whether the operand comes from the same place in `step` and in the one after it.
bool RepeatedSteps::isAlike(unsigned step, unsigned op, unsigned operand) const {
  Value value = at(step, op)->getOperand(operand), next = at(step + 1, op)->getOperand(operand);
  std::optional<Place> place = placeOf(value), following = placeOf(next);
  if (place && following)
    return place->op == following->op && place->result == following->result &&
           place->step + 1 == following->step;
  return !place && !following;
}

std::pair<unsigned, unsigned> RepeatedSteps::longestRun() const {
  std::pair<unsigned, unsigned> longest(0, 0);
  unsigned first = 0;
  for (unsigned step : llvm::seq(steps)) {
    bool goesOn = step + 1 < steps && llvm::all_of(llvm::seq(period), [&](unsigned op) {
                    return llvm::all_of(llvm::seq(at(0, op)->getNumOperands()),
                                        [&](unsigned i) { return isAlike(step, op, i); });
                  });
    if (goesOn)
      continue;
    if (step + 1 - first > longest.second)
      longest = {first, step + 1 - first};
    first = step + 1;
  }
  return longest;
}

static SplatElementsAttr splatOf(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  return constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
}

/// Whether the operand is a constant: the same one, or a number for each step.
bool RepeatedSteps::isConstant(ArrayRef<Value> values, OperandSource &source) {
  auto attributeOf = [](Value value) {
    auto constant = value.getDefiningOp<ConstantOp>();
    return constant ? Attribute(constant.getValue()) : Attribute();
  };
  if (!llvm::all_of(values, attributeOf))
    return false;
  if (llvm::all_equal(llvm::map_range(values, attributeOf))) {
    source = {OperandSource::Constant, 0, 0, values[0]};
    return true;
  }
  if (!llvm::all_of(values, splatOf))
    return false;
  ConstantOfStep constant{tensorType(values[0]), {}};
  for (Value value : values)
    constant.values.push_back(splatOf(value).getSplatValue<Attribute>());
  source = {OperandSource::StepConstant, static_cast<unsigned>(constants.size()), 0, Value()};
  constants.push_back(std::move(constant));
  return true;
}

//===----------------------------------------------------------------------===//
// Elements of sequences
//===----------------------------------------------------------------------===//

static SliceOp sliceOf(Value value) {
  if (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getOperand();
  return value.getDefiningOp<SliceOp>();
}

bool RepeatedSteps::sliceVaries(unsigned op) const {
  auto slice = dyn_cast<SliceOp>(at(0, op));
  return slice && llvm::any_of(llvm::seq(1u, steps), [&](unsigned step) {
           return cast<SliceOp>(at(step, op)).getStart() != slice.getStart();
         });
}

/// Whether the values are parts of one tensor, equally far from each other along one dim, so that
/// none is between two of them: single elements, or neighbouring parts.
bool RepeatedSteps::isElement(ArrayRef<Value> values, OperandSource &source) {
  SliceOp first = sliceOf(values[0]), second = sliceOf(values[1]);
  if (!first || !second)
    return false;
  ElementOfSequence element{first, -1, 0, tensorType(values[0])};
  for (auto [dim, start, next] : llvm::enumerate(first.getStart(), second.getStart())) {
    if (start == next)
      continue;
    if (element.advance != 0)
      return false;
    element.dim = dim;
    element.advance = next - start;
  }
  if (element.advance == 0 || placeOf(first.getOperand()))
    return false;
  bool areNeighbours =
      first.getStride()[element.dim] == 1 && std::abs(element.advance) == element.size();
  if (element.size() != 1 && !areNeighbours)
    return false;
  for (auto [step, value] : llvm::enumerate(values)) {
    SliceOp slice = sliceOf(value);
    if (!slice || slice.getOperand() != first.getOperand() || value.getType() != element.type ||
        slice.getType() != first.getType() || slice.getStride() != first.getStride())
      return false;
    SmallVector<int64_t> expected(first.getStart());
    expected[element.dim] += static_cast<int64_t>(step) * element.advance;
    if (slice.getStart() != ArrayRef(expected))
      return false;
  }
  source = {OperandSource::Element, enter(element), 0, Value()};
  return true;
}

unsigned RepeatedSteps::enter(ElementOfSequence element) {
  auto *known = llvm::find_if(elements, [&](ElementOfSequence &other) {
    return other.first.getOperand() == element.first.getOperand() &&
           other.first->getAttrDictionary() == element.first->getAttrDictionary() &&
           other.dim == element.dim && other.advance == element.advance &&
           other.type == element.type;
  });
  unsigned number = known - elements.begin();
  if (known == elements.end())
    elements.push_back(element);
  return number;
}

//===----------------------------------------------------------------------===//
// Values that are gathered
//===----------------------------------------------------------------------===//

bool weft::isDraw(Operation *op) {
  return isa<TorchFallbackOp>(op) && llvm::all_of(op->getOperands(), [](Value operand) {
           return operand.getDefiningOp<ConstantOp>() != nullptr;
         });
}

/// Only inputs may differ from step to step. Layers of a network that is no loop have weights of
/// their own, which are too large to be stacked.
static bool isInput(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto func =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  if (!func)
    return false;
  auto kind = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "weft.kind");
  return kind && kind.getValue() == "input";
}

/// Whether each step has a tensor of its own that was drawn or given.
bool RepeatedSteps::isGathered(ArrayRef<Value> values, OperandSource &source) {
  auto mayGather = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return value.getType() == values[0].getType() && (op ? isDraw(op) : isInput(value));
  };
  if (!llvm::all_of(values, mayGather))
    return false;
  auto *known = llvm::find_if(
      gathered, [&](const GatheredValues &other) { return ArrayRef(other.values) == values; });
  source = {OperandSource::Gathered, static_cast<unsigned>(known - gathered.begin()), 0, Value()};
  if (known == gathered.end())
    gathered.push_back({tensorType(values[0]), SmallVector<Value>(values)});
  return true;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The concat that reads `value`, by itself or through a reshape that nothing else reads, and the
/// operand's number there.
static std::optional<std::pair<Operation *, unsigned>> concatOf(OpOperand &use) {
  if (isa<ConcatOp>(use.getOwner()))
    return std::pair(use.getOwner(), use.getOperandNumber());
  auto reshape = dyn_cast<ReshapeOp>(use.getOwner());
  if (!reshape || !reshape->hasOneUse())
    return std::nullopt;
  OpOperand &next = *reshape->use_begin();
  if (!isa<ConcatOp>(next.getOwner()))
    return std::nullopt;
  return std::pair(next.getOwner(), next.getOperandNumber());
}

std::string RepeatedSteps::classifyUses(unsigned op, unsigned result, bool readSingly) {
  if (elementOps.contains(op))
    return "";
  auto isOutside = [&](OpOperand &use) { return !positions.contains(use.getOwner()); };
  auto valueOf = [&](unsigned step) -> Value { return at(step, op)->getResult(result); };
  // How many uses each value has, beside those as parts of stacks of all steps.
  SmallVector<unsigned> others(steps);
  for (unsigned step : llvm::seq(steps))
    others[step] = llvm::count_if(valueOf(step).getUses(), isOutside);
  for (OpOperand &use : valueOf(0).getUses()) {
    if (!isOutside(use))
      continue;
    auto first = concatOf(use);
    if (!first)
      continue;
    auto [concat, number] = *first;
    for (bool isReversed : {false, true}) {
      if (isReversed ? number + 1 < steps : number + steps > concat->getNumOperands())
        continue;
      auto isPart = [&, concat = concat, number = number](unsigned step) {
        unsigned place = isReversed ? number - step : number + step;
        Value part = concat->getOperand(place);
        Value whole = valueOf(step);
        auto reshape = part.getDefiningOp<ReshapeOp>();
        bool isReshaped = reshape && reshape.getOperand() == whole && reshape->hasOneUse();
        return part.getType() == concat->getOperand(number).getType() &&
               (part == whole || isReshaped);
      };
      if (!llvm::all_of(llvm::seq(steps), isPart))
        continue;
      auto isSame = [&, concat = concat](const StackedUse &use) { return use.concat == concat; };
      if (llvm::any_of(stacked, isSame)) {
        if (readSingly)
          break;
        return "one concat stacks several results of the steps";
      }
      stacked.push_back({op, result, concat, isReversed ? number + 1 - steps : number, isReversed});
      for (unsigned &count : others)
        --count;
      break;
    }
  }
  if (llvm::any_of(ArrayRef(others).drop_back(), [](unsigned count) { return count > 0; })) {
    if (!readSingly)
      return "what single steps compute is read behind them";
    single.push_back({op, result});
  } else if (others.back() > 0)
    last.push_back({op, result});
  return "";
}
