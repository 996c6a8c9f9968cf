// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fuses a decomposed attention, softmax(scale q k^T + mask) v, into one op, so that its scores are
// never stored to memory.
#include "compiler/Graph/ComputeBuilder.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Transforms/AttentionMatcher.h"
#include "compiler/Transforms/Passes.h"
#include <cmath>

namespace weft {
#define GEN_PASS_DEF_FORMATTENTION
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

/// A contraction operand as batched matrices.
struct Matrices {
  Value value;
  ArrayRef<int64_t> batch;
  int64_t free, summed;

  static std::optional<Matrices> of(Value value, ArrayRef<int64_t> batch,
                                    ArrayRef<int64_t> contract);
  /// `value` with its batch dims reshaped to `sizes`, followed by dims `row` and `column`.
  Value inOrder(ComputeBuilder &b, ArrayRef<int64_t> sizes, int64_t row, int64_t column) const;
};

struct FormAttention : weft::impl::FormAttentionBase<FormAttention> {
  void runOnOperation() override {
    for (SoftmaxOp softmax : llvm::to_vector(getOperation().getOps<SoftmaxOp>()))
      if (form(softmax))
        ++numFormed;
  }

private:
  bool form(SoftmaxOp softmax);
};

} // namespace

std::optional<Matrices> Matrices::of(Value value, ArrayRef<int64_t> batch,
                                     ArrayRef<int64_t> contract) {
  int64_t rank = tensorType(value).getRank();
  if (contract.size() != 1 || rank != static_cast<int64_t>(batch.size()) + 2)
    return std::nullopt;
  auto dims = llvm::seq(rank);
  auto isFree = [&](int64_t dim) {
    return dim != contract.front() && !llvm::is_contained(batch, dim);
  };
  return Matrices{value, batch, *llvm::find_if(dims, isFree), contract.front()};
}

Value Matrices::inOrder(ComputeBuilder &b, ArrayRef<int64_t> sizes, int64_t row,
                        int64_t column) const {
  SmallVector<int64_t> order(batch), shape(sizes);
  order.append({row, column});
  shape.append({tensorType(value).getDimSize(row), tensorType(value).getDimSize(column)});
  return b.reshape(llvm::is_sorted(order) ? value : b.create<TransposeOp>(value, order), shape);
}

/// The contraction over keys, the last dim of `weights`, if it is their only use.
static DotGeneralOp weightedSum(Value weights) {
  if (!weights.hasOneUse())
    return {};
  Operation *user = *weights.user_begin();
  if (auto reshape = dyn_cast<ReshapeOp>(user))
    return keepsMatrices(reshape) ? weightedSum(reshape) : DotGeneralOp();
  auto dot = dyn_cast<DotGeneralOp>(user);
  if (!dot || dot.getLhs() != weights)
    return {};
  auto matrices = Matrices::of(weights, dot.getLhsBatch(), dot.getLhsContract());
  bool inOrder = matrices && llvm::is_sorted(matrices->batch) &&
                 matrices->free == static_cast<int64_t>(matrices->batch.size()) &&
                 matrices->summed == matrices->free + 1;
  return inOrder ? dot : DotGeneralOp();
}

/// Strips a constant factor of all elements, and multiplies `scale` by it.
static Value withoutFactor(Value operand, double &scale) {
  auto product = operand.getDefiningOp<MulOp>();
  if (!product || !product->hasOneUse())
    return operand;
  for (auto [inner, factor] :
       {std::pair(product.getLhs(), product.getRhs()), {product.getRhs(), product.getLhs()}})
    if (std::optional<double> by = splatFloat(factor)) {
      scale *= *by;
      return inner;
    }
  return operand;
}

/// Whether `scale`, a product of factors, is a normal number of type `element`.
static bool isFactorOf(Type element, double scale) {
  if (element.isF32() && scale != 0)
    return std::isnormal(static_cast<float>(scale));
  return std::isfinite(scale);
}

bool FormAttention::form(SoftmaxOp softmax) {
  RankedTensorType type = softmax.getType();
  int64_t rank = type.getRank();
  Type element = type.getElementType();
  if ((!element.isF32() && !element.isF64()) || rank < 2 ||
      static_cast<int64_t>(softmax.getDim()) != rank - 1)
    return false;
  DotGeneralOp sum = weightedSum(softmax.getResult());
  auto scores = AttentionMatcher::behind(softmax.getOperand());
  if (!sum || !scores)
    return false;
  DotGeneralOp product = scores->product();
  double scale = scores->factor();
  auto query = Matrices::of(withoutFactor(product.getLhs(), scale), product.getLhsBatch(),
                            product.getLhsContract());
  auto key = Matrices::of(withoutFactor(product.getRhs(), scale), product.getRhsBatch(),
                          product.getRhsContract());
  auto value = Matrices::of(sum.getRhs(), sum.getRhsBatch(), sum.getRhsContract());
  // Contractions of narrow types may have wider results.
  if (!query || !key || !value || tensorType(query->value).getElementType() != element ||
      !isFactorOf(element, scale))
    return false;

  OpBuilder builder(sum);
  Location loc = builder.getFusedLoc({product.getLoc(), softmax.getLoc(), sum.getLoc()});
  ArrayRef<int64_t> batch = type.getShape().drop_back(2);
  ComputeBuilder b(builder, loc, element);
  Value attention = b.create<AttentionOp>(
      query->inOrder(b, batch, query->free, query->summed),
      key->inOrder(b, batch, key->free, key->summed),
      value->inOrder(b, batch, value->summed, value->free), scores->mask(builder, loc, type),
      builder.getBoolAttr(false), builder.getF64FloatAttr(scale),
      builder.getF64FloatAttr(scores->hiddenScore()));
  sum.getResult().replaceAllUsesWith(b.reshape(attention, sum.getType().getShape()));
  sum.erase();
  return true;
}
