// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/LinearLayers.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Transforms/PreparedValues.h"

using namespace mlir;
using namespace weft;

bool weft::isWeight(Value value) {
  if (isTiled(layoutOf(tensorType(value))))
    return false;
  if (isa<BlockArgument>(value))
    return true;
  while (isa_and_present<ConvertOp, ReshapeOp, TransposeOp, SliceOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
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
  return double(tokens.getNumElements()) / double(tokens.getShape().back());
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

SmallVector<LinearLayer> weft::linearLayers(func::FuncOp function) {
  SmallVector<LinearLayer> linears;
  for (Operation &op : function.front()) {
    auto add = [&](ArrayRef<int64_t> contract) {
      RankedTensorType tokens = tensorType(op.getOperand(0));
      ValueRange weights = op.getOperands().drop_front();
      if (tokens.getRank() == 0) // a factor
        return;
      linears.push_back(
          {tokens, weights, isInByOut(contract) && !llvm::all_of(weights, isCopiedWeight)});
    };
    if (auto multi = dyn_cast<MultiDotOp>(op))
      add(multi.getRhsContract());
    else if (auto dot = dyn_cast<DotGeneralOp>(op); dot && dot.getLhsBatch().empty())
      add(dot.getRhsContract());
  }
  return linears;
}

bool weft::lieMostlyInByOut(ArrayRef<LinearLayer> linears) {
  double inByOut = 0, outByIn = 0;
  for (const LinearLayer &linear : linears)
    (linear.inByOut ? inByOut : outByIn) += linear.rows() * linear.weightElements();
  return inByOut > outByIn;
}

/// Whether token blocks would be padded so much that packing weights, with row-major tokens, is
/// better. With fewer tokens, contractions are bound by loading weights either way. Attention gains
/// from token blocks: measured on layers of 384 and 768 features with 49 to 197 tokens; at 197 both
/// are level.
static bool wouldPadTokens(ArrayRef<LinearLayer> linears, const LinearLayouts &layouts,
                           bool hasAttention) {
  constexpr int64_t fewestTokens = 48;
  constexpr double mostWork = 1.05, mostBesideAttention = 1.08;
  double work = 0, inBlocks = 0;
  for (const LinearLayer &linear : linears) {
    int64_t rank = linear.tokens.getRank();
    if (rank < 2 || linear.tokens.getDimSize(rank - 2) < fewestTokens)
      continue;
    double ofLinear = linear.rows() * linear.weightElements();
    work += ofLinear;
    inBlocks += ofLinear * layouts.workInTokenBlocks(linear.tokens);
  }
  return inBlocks > (hasAttention ? mostBesideAttention : mostWork) * work;
}

bool weft::hasOneLinear(func::FuncOp function) {
  return function.getOps<AttentionOp>().empty() && linearLayers(function).size() == 1;
}

/// Whether a program calls attention, rather than decomposing it, and has too many weights to copy
/// them: a copy is made for each sequence length.
static bool wantsWeightsInPlace(func::FuncOp function, ArrayRef<LinearLayer> linears) {
  constexpr double mostElements = 1 << 25; // 128 MiB of f32
  double elements = 0;
  for (const LinearLayer &linear : linears)
    elements += linear.weightElements();
  return elements > mostElements &&
         llvm::any_of(function.getOps<AttentionOp>(),
                      [](AttentionOp attention) { return !attention.getHiddenScore(); });
}

bool weft::packsWeights(func::FuncOp function, const LinearLayouts &layouts, bool isOneLinear) {
  bool hasAttention = !function.getOps<AttentionOp>().empty();
  constexpr int64_t ofMany = 1 << 20, ofOne = 4 << 20;
  int64_t mostBytes = isOneLinear ? ofOne : ofMany;
  PreparedValues prepared(function);
  SmallVector<LinearLayer> linears = linearLayers(function);
  auto eachWeight = [&](llvm::function_ref<bool(Value)> holds) {
    return llvm::all_of(
        linears, [&](const LinearLayer &linear) { return llvm::all_of(linear.weights, holds); });
  };
  bool areSmall = eachWeight([&](Value weight) {
    RankedTensorType type = tensorType(weight);
    return type.getNumElements() * type.getElementTypeBitWidth() / 8 <= mostBytes;
  });
  return eachWeight([&](Value weight) { return prepared.contains(weight); }) &&
         ((areSmall && !hasAttention) || (!wantsWeightsInPlace(function, linears) &&
                                          wouldPadTokens(linears, layouts, hasAttention)));
}
