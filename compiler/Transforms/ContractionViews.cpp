// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Follows the innermost dim of what lies in memory through views to the operand.
#include "compiler/Transforms/ContractionViews.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;

namespace {
/// Neighbours in memory are `step` apart along `dim`.
struct Innermost {
  int64_t dim;
  int64_t step = 1;

  bool operator==(const Innermost &) const = default;
};

/// An operand and the dims that it shares with the result and with the other operand.
struct Factor {
  Value value;
  ArrayRef<int64_t> batch, contract;
  std::optional<Innermost> innermost;

  Factor(Value value, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract);

  RankedTensorType type() const { return cast<RankedTensorType>(value.getType()); }
  bool isView() const;
  SmallVector<int64_t> free() const;
  /// The place of `dim` among the contracted ones.
  std::optional<int64_t> contracts(int64_t dim) const {
    auto *place = llvm::find(contract, dim);
    return place == contract.end() ? std::nullopt : std::optional(place - contract.begin());
  }
};
} // namespace

/// The last dim of more than one element, in memory.
static std::optional<int64_t> innermostInMemory(RankedTensorType type) {
  LayoutAttr layout = layoutOf(type);
  if (layout && layout.hasTile())
    return layout.getTileDim();
  for (int64_t place = type.getRank() - 1; place >= 0; --place) {
    int64_t dim = layout ? layout.getOrder()[place] : place;
    if (type.getDimSize(dim) > 1)
      return dim;
  }
  return std::nullopt;
}

/// The same elements under another shape: the dim of which so many row-major steps are whole ones.
static std::optional<Innermost> throughReshape(Innermost at, ArrayRef<int64_t> from,
                                               ArrayRef<int64_t> to) {
  int64_t distance = at.step;
  for (int64_t size : from.drop_front(at.dim + 1))
    distance *= size;
  int64_t stride = 1;
  for (int64_t dim = to.size() - 1; dim >= 0; --dim) {
    if (distance % stride == 0 && distance < stride * to[dim])
      return Innermost{dim, distance / stride};
    stride *= to[dim];
  }
  return std::nullopt;
}

/// Nothing behind an op that is none of the views known here, or one that skips elements.
static std::optional<Innermost> innermostOf(Value value) {
  auto stored = [&]() -> std::optional<Innermost> {
    std::optional<int64_t> dim = innermostInMemory(cast<RankedTensorType>(value.getType()));
    return dim ? std::optional(Innermost{*dim}) : std::nullopt;
  };
  Operation *op = value.getDefiningOp();
  if (!op)
    return stored();
  auto behind = [&]() { return innermostOf(op->getOperand(0)); };
  return TypeSwitch<Operation *, std::optional<Innermost>>(op)
      .Case([&](TransposeOp transpose) -> std::optional<Innermost> {
        std::optional<Innermost> at = behind();
        if (at)
          at->dim = llvm::find(transpose.getPerm(), at->dim) - transpose.getPerm().begin();
        return at;
      })
      .Case([&](ReshapeOp reshape) -> std::optional<Innermost> {
        std::optional<Innermost> at = behind();
        if (!at)
          return at;
        return throughReshape(*at, reshape.getOperand().getType().getShape(),
                              reshape.getType().getShape());
      })
      .Case([&](SliceOp slice) -> std::optional<Innermost> {
        std::optional<Innermost> at = behind();
        return at && slice.getStride()[at->dim] == 1 ? at : std::nullopt;
      })
      .Case([&](RelayoutOp) { return behind(); })
      .Default([&](Operation *) { return stored(); });
}

Factor::Factor(Value value, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract)
    : value(value), batch(batch), contract(contract), innermost(innermostOf(value)) {}

bool Factor::isView() const {
  return isa_and_present<TransposeOp, ReshapeOp, SliceOp>(value.getDefiningOp()) &&
         !layoutOf(type());
}

SmallVector<int64_t> Factor::free() const {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < type().getRank(); ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      dims.push_back(dim);
  return dims;
}

SmallVector<Value> weft::operandsToStore(DotGeneralOp dot) {
  Factor lhs(dot.getLhs(), dot.getLhsBatch(), dot.getLhsContract());
  Factor rhs(dot.getRhs(), dot.getRhsBatch(), dot.getRhsContract());
  std::optional<int64_t> resultDim = innermostInMemory(dot.getType());
  if (!resultDim || !lhs.innermost || !rhs.innermost)
    return {};
  // A result has the batch dims, those of the left side and those of the right.
  int64_t number = *resultDim - int64_t(lhs.batch.size());
  if (number < 0)
    return {};
  SmallVector<int64_t> ofLeft = lhs.free(), ofRight = rhs.free();
  bool isLeft = number < int64_t(ofLeft.size());
  const Factor &vectors = isLeft ? lhs : rhs;
  int64_t lane = isLeft ? ofLeft[number] : ofRight[number - ofLeft.size()];
  if (*vectors.innermost == Innermost{lane})
    return {};
  auto sameSum = [&](Innermost left, Innermost right) {
    std::optional<int64_t> place = lhs.contracts(left.dim);
    return place && place == rhs.contracts(right.dim) && left.step == right.step;
  };
  if (sameSum(*lhs.innermost, *rhs.innermost))
    return {};

  auto lastOf = [](const Factor &factor) { return Innermost{factor.type().getRank() - 1}; };
  if (vectors.isView() && lastOf(vectors).dim == lane)
    return {vectors.value};
  SmallVector<Value> values;
  if (sameSum(lastOf(lhs), lastOf(rhs)))
    for (const Factor *factor : {&lhs, &rhs})
      if (*factor->innermost != lastOf(*factor) && factor->isView())
        values.push_back(factor->value);
  return values;
}
