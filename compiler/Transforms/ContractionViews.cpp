// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/ContractionViews.h"
#include "compiler/Graph/OpCost.h"
#include "compiler/Transforms/InnermostDim.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace weft;

namespace {
/// An operand and the dims that it shares with the result and with the other operand.
struct Factor {
  Value value;
  ArrayRef<int64_t> batch, contract;
  std::optional<InnermostDim> innermost;

  Factor(Value value, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract);

  RankedTensorType type() const { return cast<RankedTensorType>(value.getType()); }
  bool isView() const;
  SmallVector<int64_t> free() const;
  /// The position of `dim` among the contracted dims.
  std::optional<int64_t> contracts(int64_t dim) const {
    auto *place = llvm::find(contract, dim);
    return place == contract.end() ? std::nullopt : std::optional(place - contract.begin());
  }
};
} // namespace

Factor::Factor(Value value, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract)
    : value(value), batch(batch), contract(contract), innermost(innermostOf(value)) {}

bool Factor::isView() const { return placementOf(value.getDefiningOp()).view && !layoutOf(type()); }

SmallVector<int64_t> Factor::free() const {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < type().getRank(); ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      dims.push_back(dim);
  return dims;
}

/// Looks through reshapes that keep the row-major order: the operand can be read in place, without
/// divisions of indices.
static Value behindReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>()) {
    Value operand = reshape.getOperand();
    if (!operand.getDefiningOp() || layoutOf(reshape.getOperand().getType()) ||
        layoutOf(reshape.getType()))
      break;
    value = operand;
  }
  return value;
}

SmallVector<Value> weft::operandsToStore(DotGeneralOp dot) {
  Factor lhs(dot.getLhs(), dot.getLhsBatch(), dot.getLhsContract());
  Factor rhs(dot.getRhs(), dot.getRhsBatch(), dot.getRhsContract());
  std::optional<int64_t> resultDim = innermostInMemory(dot.getType());
  if (!resultDim || !lhs.innermost || !rhs.innermost)
    return {};
  // A result has the batch dims, then the free dims of the left and of the right side.
  int64_t number = *resultDim - int64_t(lhs.batch.size());
  if (number < 0)
    return {};
  SmallVector<int64_t> ofLeft = lhs.free(), ofRight = rhs.free();
  bool isLeft = number < int64_t(ofLeft.size());
  const Factor &vectors = isLeft ? lhs : rhs;
  int64_t lane = isLeft ? ofLeft[number] : ofRight[number - ofLeft.size()];
  if (*vectors.innermost == InnermostDim{lane})
    return {};
  auto sameSum = [&](InnermostDim left, InnermostDim right) {
    std::optional<int64_t> place = lhs.contracts(left.dim);
    return place && place == rhs.contracts(right.dim) && left.step == right.step;
  };
  if (sameSum(*lhs.innermost, *rhs.innermost))
    return {};

  auto lastOf = [](const Factor &factor) { return InnermostDim{factor.type().getRank() - 1}; };
  if (vectors.isView() && lastOf(vectors).dim == lane)
    return {behindReshapes(vectors.value)};
  SmallVector<Value> values;
  if (sameSum(lastOf(lhs), lastOf(rhs)))
    for (const Factor *factor : {&lhs, &rhs})
      if (*factor->innermost != lastOf(*factor) && factor->isView())
        values.push_back(behindReshapes(factor->value));
  return values;
}
