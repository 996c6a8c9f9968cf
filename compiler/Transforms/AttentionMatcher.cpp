// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/AttentionMatcher.h"
#include "compiler/Graph/ComputeBuilder.h"
#include "compiler/Graph/Constraints.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;

std::optional<double> weft::splatFloat(Value value) {
  DenseFPElementsAttr constant;
  if (!matchPattern(value, m_Constant(&constant)) || !constant.isSplat())
    return std::nullopt;
  return constant.getSplatValue<APFloat>().convertToDouble();
}

bool weft::keepsMatrices(ReshapeOp reshape) {
  ArrayRef<int64_t> from = tensorType(reshape.getOperand()).getShape();
  ArrayRef<int64_t> to = reshape.getType().getShape();
  return from.size() >= 2 && to.size() >= 2 && from.take_back(2) == to.take_back(2);
}

std::optional<AttentionMatcher> AttentionMatcher::behind(Value value) {
  AttentionMatcher scores;
  return scores.peel(value) ? std::optional(scores) : std::nullopt;
}

bool AttentionMatcher::peel(Value value) {
  Operation *source = value.getDefiningOp();
  if (!source || !value.hasOneUse())
    return false;
  // Either operand may lead to the product.
  auto either = [&](Value lhs, Value rhs, auto take) {
    AttentionMatcher before = *this;
    for (auto [inner, other] : {std::pair(lhs, rhs), {rhs, lhs}}) {
      if (take(inner, other))
        return true;
      *this = before;
    }
    return false;
  };
  return llvm::TypeSwitch<Operation *, bool>(source)
      .Case([&](DotGeneralOp found) {
        dot = found;
        return true;
      })
      .Case([&](ReshapeOp reshape) { return keepsMatrices(reshape) && peel(reshape.getOperand()); })
      .Case([&](MulOp product) {
        return either(product.getLhs(), product.getRhs(), [&](Value inner, Value factor) {
          return peelScale(inner, factor, /*divides=*/false);
        });
      })
      .Case([&](DivOp quotient) {
        return peelScale(quotient.getLhs(), quotient.getRhs(), /*divides=*/true);
      })
      .Case([&](AddOp sum) {
        return either(sum.getLhs(), sum.getRhs(), [&](Value inner, Value summand) {
          summands.push_back(summand);
          return scale == 1 && choices.empty() && peel(inner);
        });
      })
      .Case([&](SelectOp select) { return scale == 1 && peelChoice(select); })
      .Default(false);
}

/// Matching goes from the softmax inwards and has to meet the masks before the scale: a scale
/// applied after masking would scale the mask too.
bool AttentionMatcher::peelScale(Value scaled, Value factor, bool divides) {
  std::optional<double> by = splatFloat(factor);
  if (!by)
    return false;
  scale *= divides ? 1 / *by : *by;
  return peel(scaled);
}

bool AttentionMatcher::peelChoice(SelectOp select) {
  for (bool keeps : {true, false}) {
    Value score = keeps ? select.getOnTrue() : select.getOnFalse();
    std::optional<double> other = splatFloat(keeps ? select.getOnFalse() : select.getOnTrue());
    if (!other || !(*other < 0))
      continue;
    bool isAnother = !choices.empty() && hidden != *other;
    if (isAnother || !summands.empty())
      return false;
    hidden = *other;
    choices.push_back({select.getCondition(), keeps});
    return peel(score);
  }
  return false;
}

Value AttentionMatcher::mask(OpBuilder &builder, Location loc, RankedTensorType type) const {
  ComputeBuilder b(builder, loc, type.getElementType());
  Value mask;
  for (Value summand : summands) {
    summand = b.reshape(summand, type.getShape());
    mask = mask ? b.create<AddOp>(mask, summand) : summand;
  }
  for (const Choice &choice : choices) {
    Value kept = choice.keeps ? choice.condition : b.create<NotOp>(choice.condition);
    kept = b.reshape(kept, type.getShape());
    mask = mask ? b.create<AndOp>(mask, kept) : kept;
  }
  return mask;
}
