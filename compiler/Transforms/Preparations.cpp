// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/Preparations.h"
#include "compiler/Graph/OpCost.h"
#include "compiler/Transforms/PreparedValues.h"

using namespace mlir;
using namespace weft;

/// Or a loop, whose steps read what they are given again and again.
static bool isContraction(Operation *op) {
  return isa<LoopOp>(op) || op->hasTrait<LinearContraction>();
}

/// Whether the users of `relayout` read its elements repeatedly: tiled layouts, and weights of
/// contractions. For others it is index arithmetic in the kernel that reads them.
static bool isPacking(RelayoutOp relayout) {
  return isTiled(layoutOf(relayout.getType())) || llvm::any_of(relayout->getUsers(), isContraction);
}

/// Contractions read memory: the conversion of an operand would be a separate kernel in each call.
static bool isConvertedForContraction(Operation *op) {
  return isa<ConvertOp>(op) && llvm::any_of(op->getUsers(), isContraction);
}

/// Whether a prepared value is only read rounded: then the rounded one is prepared, as it takes
/// less memory.
static bool isRoundedPreparation(Operation *op, const PreparedValues &prepared) {
  auto convert = dyn_cast<ConvertOp>(op);
  if (!convert)
    return false;
  Value exact = convert.getOperand();
  Operation *producer = exact.getDefiningOp();
  return producer && !placementOf(producer).repeated && prepared.dependsOnWeight(exact) &&
         getElementTypeOrSelf(convert.getType()).getIntOrFloatBitWidth() <
             getElementTypeOrSelf(exact.getType()).getIntOrFloatBitWidth();
}

/// The results worth preparing among the producers of `values`, through recomputed ops.
static llvm::DenseSet<Value> findWorthwhile(SmallVector<Value> values,
                                            const PreparedValues &prepared) {
  llvm::DenseSet<Value> found, seen;
  while (!values.empty()) {
    Value value = values.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !prepared.contains(value) || !seen.insert(value).second)
      continue;
    auto relayout = dyn_cast<RelayoutOp>(op);
    if ((relayout && isPacking(relayout)) || isRoundedPreparation(op, prepared))
      found.insert(value);
    else if (placementOf(op).repeated && !isConvertedForContraction(op))
      llvm::append_range(values, op->getOperands());
    else if (prepared.dependsOnWeight(value))
      found.insert(value);
  }
  return found;
}

SmallVector<Value> weft::findPreparations(func::FuncOp function) {
  PreparedValues prepared(function);
  SmallVector<Value> read, returned;
  for (Operation &op : function.front()) {
    bool isPrepared = op.getNumResults() > 0 && prepared.contains(op.getResult(0));
    if (!isPrepared)
      llvm::append_range(isa<func::ReturnOp>(op) ? returned : read, op.getOperands());
  }
  llvm::DenseSet<Value> worthwhile = findWorthwhile(read, prepared);
  llvm::DenseSet<Value> ofCaller = findWorthwhile(returned, prepared);
  SmallVector<Value> ordered;
  for (Operation &op : function.front())
    for (Value result : op.getResults())
      if (ofCaller.contains(result) ? isa<RelayoutOp>(op) : worthwhile.contains(result))
        ordered.push_back(result);
  return ordered;
}

SmallVector<Operation *> weft::collectChains(func::FuncOp function, ArrayRef<Value> prepared) {
  llvm::SetVector<Operation *> needed;
  auto pending = llvm::map_to_vector(prepared, [](Value value) { return value.getDefiningOp(); });
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (!needed.insert(op))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        pending.push_back(producer);
  }
  SmallVector<Operation *> ordered;
  for (Operation &op : function.front())
    if (needed.contains(&op))
      ordered.push_back(&op);
  return ordered;
}
