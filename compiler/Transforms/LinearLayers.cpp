// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/LinearLayers.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/OpCost.h"
#include "compiler/Transforms/PreparedValues.h"

using namespace mlir;
using namespace weft;

bool weft::isWeight(Value value) {
  if (isTiled(layoutOf(tensorType(value))))
    return false;
  if (isa<BlockArgument>(value))
    return true;
  for (Operation *op; (op = value.getDefiningOp()) && (isa<ConvertOp>(op) || placementOf(op).view);)
    value = op->getOperand(0);
  auto argument = dyn_cast<BlockArgument>(value);
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : nullptr;
  if (!function)
    return false;
  auto kind = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), attr::kind);
  return kind && kind.getValue() != "input";
}

bool weft::isCopiedWeight(Value value) {
  return isa_and_present<ConvertOp>(value.getDefiningOp()) && isWeight(value);
}

double LinearLayer::rows() const {
  RankedTensorType type = tensorType(tokens);
  return double(type.getNumElements()) / double(type.getShape().back());
}

double LinearLayer::weightElements() const {
  double total = 0;
  for (Value weight : weights)
    total += double(tensorType(weight).getNumElements());
  return total;
}

bool weft::isInByOut(ArrayRef<int64_t> rhsContract) {
  return llvm::equal(rhsContract, ArrayRef<int64_t>{0});
}

/// The dims along which a linear layer reduces its weights; nothing for other ops.
static std::optional<ArrayRef<int64_t>> reducedOfWeights(Operation *op) {
  if (auto multi = dyn_cast<MultiDotOp>(op))
    return multi.getRhsContract();
  auto dot = dyn_cast<DotGeneralOp>(op);
  if (!dot || !dot.getLhsBatch().empty() || dot.getLhs().getType().getRank() == 0) // a factor
    return std::nullopt;
  return dot.getRhsContract();
}

SmallVector<LinearLayer> weft::linearLayers(func::FuncOp function) {
  SmallVector<LinearLayer> linears;
  for (Operation &op : function.front())
    if (auto reduced = reducedOfWeights(&op)) {
      ValueRange weights = op.getOperands().drop_front();
      bool inByOut = isInByOut(*reduced) && !llvm::all_of(weights, isCopiedWeight);
      linears.push_back({op.getOperand(0), weights, inByOut});
    }
  return linears;
}

llvm::DenseSet<Operation *> weft::linearLayersApart(func::FuncOp function) {
  auto wantsBlocks = [](Operation &op) { return isa<AttentionOp>(op) || reducedOfWeights(&op); };
  llvm::DenseSet<Value> before, after;
  llvm::DenseSet<Operation *> apart;
  for (Operation &op : function.front()) {
    bool isAfter =
        llvm::any_of(op.getOperands(), [&](Value value) { return after.contains(value); });
    if (!isAfter && reducedOfWeights(&op))
      apart.insert(&op);
    if (isAfter || wantsBlocks(op))
      after.insert_range(op.getResults());
  }
  for (Operation &op : llvm::reverse(function.front())) {
    bool isBefore =
        llvm::any_of(op.getResults(), [&](Value value) { return before.contains(value); });
    if (isBefore)
      apart.erase(&op);
    if (isBefore || wantsBlocks(op))
      before.insert_range(op.getOperands());
  }
  return apart;
}

bool weft::lieMostlyInByOut(ArrayRef<LinearLayer> linears) {
  double inByOut = 0, outByIn = 0;
  for (const LinearLayer &linear : linears)
    (linear.inByOut ? inByOut : outByIn) += linear.rows() * linear.weightElements();
  return inByOut > outByIn;
}

double weft::attentionInTokenBlocks(func::FuncOp function) {
  double work = 0;
  for (auto attention : function.getOps<AttentionOp>()) {
    RankedTensorType query = attention.getQuery().getType(), key = attention.getKey().getType();
    if (isInTokenBlocks(query))
      work += 2.0 * double(query.getNumElements()) * double(key.getDimSize(key.getRank() - 2));
  }
  return work;
}

static double bytesOfWeights(ArrayRef<LinearLayer> linears) {
  llvm::DenseSet<Value> weights;
  double bytes = 0;
  for (const LinearLayer &linear : linears)
    for (Value weight : linear.weights)
      if (weights.insert(weight).second) {
        RankedTensorType type = tensorType(weight);
        bytes += double(type.getNumElements()) * type.getElementTypeBitWidth() / 8;
      }
  return bytes;
}

/// The linear layers that each call computes: those of weights alone are prepared.
static SmallVector<LinearLayer> linearLayersOfCalls(func::FuncOp function,
                                                    const PreparedValues &prepared) {
  SmallVector<LinearLayer> linears = linearLayers(function);
  llvm::erase_if(linears,
                 [&](const LinearLayer &linear) { return prepared.contains(linear.tokens); });
  return linears;
}

bool weft::mayPackWeights(func::FuncOp function) {
  // A copy is made for each set of sizes, and lasts as long as its program.
  constexpr double mostCopied = 128 << 20;
  PreparedValues prepared(function);
  SmallVector<LinearLayer> linears = linearLayersOfCalls(function, prepared);
  return !linears.empty() && bytesOfWeights(linears) <= mostCopied &&
         llvm::all_of(linearLayers(function), [&](const LinearLayer &linear) {
           return llvm::all_of(linear.weights,
                               [&](Value weight) { return prepared.contains(weight); });
         });
}

bool weft::packingCostsLess(func::FuncOp function, const LinearLayouts &layouts, int64_t l2Bytes,
                            double movedElements, double attentionInBlocks) {
  // Of loads: a part of the time of multiply-adds. Of attention: of its own. A byte is copied in
  // the time of 20 multiply-adds, for 1000 calls.
  constexpr double ofLoads = 0.048, ofAttention = 0.8, ofCopy = 0.02;
  constexpr int64_t fewestTokens = 48;
  SmallVector<LinearLayer> linears = linearLayersOfCalls(function, PreparedValues(function));
  llvm::DenseMap<Value, int64_t> readers;
  for (const LinearLayer &linear : linears)
    for (Value weight : linear.weights)
      ++readers[weight];
  double bytes = bytesOfWeights(linears);
  // Layouts do not depend on the number of threads. From two on they divide the columns, and each
  // keeps its own.
  double loaded = std::max(0.0, 1 - 2 * double(l2Bytes) / bytes);
  double saved = layouts.costOfMoving() * movedElements;
  double lost = ofAttention * attentionInBlocks + ofCopy * bytes;
  for (const LinearLayer &linear : linears) {
    RankedTensorType tokens = tensorType(linear.tokens);
    double work = linear.rows() * linear.weightElements();
    lost += ofLoads * loaded * work;
    // With fewer tokens, loading weights takes as long in either layout.
    bool isLoading = loaded > 0 && (tokens.getRank() < 2 ||
                                    tokens.getDimSize(tokens.getRank() - 2) < fewestTokens);
    if (!isLoading)
      saved += work * (layouts.workInPlace(tokens, readers.lookup(linear.weights.front())) - 1);
  }
  return saved > lost;
}
