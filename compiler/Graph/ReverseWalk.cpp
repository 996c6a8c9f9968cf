// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Graph/ReverseWalk.h"
#include "compiler/Graph/Constraints.h"

using namespace mlir;
using namespace weft;

static bool isReal(Value value) { return isa<FloatType>(tensorType(value).getElementType()); }

Value ReverseWalk::countedFor(Value value) const {
  Value other = aliases.lookup(value);
  return other ? other : value;
}

void ReverseWalk::activateResults(ArrayRef<Operation *> ops) {
  for (Operation *op : ops) {
    bool reached =
        llvm::any_of(op->getOperands(), [&](Value v) { return active.contains(countedFor(v)); });
    if (!reached || op->hasAttr(attr::stopsGradient))
      continue;
    for (Value result : op->getResults())
      if (isReal(result))
        active.insert(result);
  }
}

void ReverseWalk::accumulate(Value value, Value cotangent) {
  value = countedFor(value);
  if (!active.contains(value))
    return;
  Value &sum = cotangents[value];
  sum = sum ? AddOp::create(builder, cotangent.getLoc(), sum, cotangent).getResult() : cotangent;
}

LogicalResult ReverseWalk::run(ArrayRef<Operation *> ops) {
  for (Operation *op : llvm::reverse(ops))
    if (failed(visit(op)))
      return failure();
  return success();
}

/// The op's name for diagnostics: the user's, where it is recorded.
static StringRef nameOf(Operation *op) {
  auto fallback = dyn_cast<TorchFallbackOp>(op);
  return fallback ? fallback.getTarget() : op->getName().getStringRef();
}

LogicalResult ReverseWalk::visit(Operation *op) {
  SmallVector<Value> known;
  for (Value result : op->getResults())
    known.push_back(cotangents.lookup(result));
  if (llvm::none_of(known, [](Value value) { return bool(value); }))
    return success();
  SmallVector<bool> wanted;
  for (Value operand : op->getOperands())
    wanted.push_back(active.contains(countedFor(operand)));
  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  Cotangents rule(builder, op, known, wanted);
  if (!differentiable || failed(differentiable.buildVJP(rule)))
    return op->emitError() << nameOf(op) << " has no derivative";
  for (unsigned number : llvm::seq(op->getNumOperands()))
    if (Value cotangent = rule.given(number))
      accumulate(op->getOperand(number), cotangent);
  if (differentiable.repeatsSteps())
    repeated.push_back(op);
  return success();
}

LogicalResult ReverseWalk::decomposeRepeated() {
  for (Operation *op : repeated) {
    OpBuilder before(op);
    Operation *last = op->getPrevNode();
    FailureOr<SmallVector<Value>> values = cast<CompositeOpInterface>(op).decompose(before);
    if (failed(values))
      return op->emitOpError() << "expected a decomposition, found none";
    if (Attribute again = op->getAttr(attr::recompute))
      for (Operation *step = op->getPrevNode(); step != last; step = step->getPrevNode())
        step->setAttr(attr::recompute, again);
    op->replaceAllUsesWith(*values);
    op->erase();
  }
  repeated.clear();
  return success();
}
