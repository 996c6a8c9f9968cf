// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Derivatives of ops that read or write at positions given by index tensors, of sorts, and of ops
// that PyTorch runs.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Derivative.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace weft;

static LogicalResult gatherVjp(GatherOp op, Cotangents &c) {
  RankedTensorType type = op.getOperand().getType();
  // Updates of the same element are added, so that the sum is computed in the wider type.
  Value updates = c.enter(c.of());
  auto wide = type.clone(tensorType(updates).getElementType());
  Value zeros = c.create<ConstantOp>(
      DenseElementsAttr::get(wide, FloatAttr::get(wide.getElementType(), 0.0)));
  Value sums =
      c.create<ScatterOp>(ScatterKind::sum, zeros, updates, op.getIndices(), op.getIndexedDims());
  c.give(0, c.leave(sums, type.getElementType()));
  return success();
}

/// `value`, which has the shape of a scatter's updates, with zeros where the indices are out of
/// bounds: such updates have written nothing.
static Value whereInside(ScatterOp op, Cotangents &c, Value value) {
  Value inside;
  for (auto [indices, dim] : llvm::zip_equal(op.getIndices(), op.getIndexedDims())) {
    double size = op.getOperand().getType().getDimSize(dim);
    Value fits = c.create<AndOp>(c.compare(ComparePredicate::ge, indices, 0),
                                 c.compare(ComparePredicate::lt, indices, size));
    inside = inside ? c.create<AndOp>(inside, fits) : fits;
  }
  SmallVector<int64_t> places =
      llvm::to_vector(llvm::seq<int64_t>(0, tensorType(inside).getRank()));
  return c.where(c.broadcast(inside, value, places), value);
}

/// The elements of `value`, which has the shape of a scatter's operand, at the positions of the
/// updates.
static Value gathered(ScatterOp op, Cotangents &c, Value value) {
  return c.create<GatherOp>(value, op.getIndices(), op.getIndexedDims());
}

/// One where `condition` holds and zero elsewhere, in the type of `like`.
static Value ones(Cotangents &c, Value condition, Value like) {
  return c.where(condition, c.splat(like, 1));
}

/// The sum of `self`, which has the shape of the operand, and of `updates` at their positions.
static Value collected(ScatterOp op, Cotangents &c, Value self, Value updates) {
  return c.create<ScatterOp>(ScatterKind::sum, self, updates, op.getIndices(), op.getIndexedDims());
}

/// The cotangent is shared evenly between all elements that equal the extremum, as in PyTorch.
static void giveExtremum(ScatterOp op, Cotangents &c) {
  Value self = op.getOperand(), updates = op.getUpdates(), result = op.getResult();
  Value isSelf = c.compare(ComparePredicate::eq, self, result);
  Value isUpdate = c.compare(ComparePredicate::eq, updates, gathered(op, c, result));
  Value count = collected(op, c, ones(c, isSelf, self), ones(c, isUpdate, updates));
  Value any = c.compare(ComparePredicate::gt, count, 0);
  Value part = c.where(any, c.div(c.of(), c.select(any, count, c.splat(count, 1))));
  if (c.wants(0u))
    c.give(0, c.where(isSelf, part));
  if (c.wants(1u))
    c.give(1, whereInside(op, c, c.where(isUpdate, gathered(op, c, part))));
}

/// The product of the other factors than `x`, where `product` is the product of all factors that
/// are not zero, and `zeros` is the number of those that are.
static Value factorCotangent(Cotangents &c, Value x, Value product, Value zeros) {
  Value isZero = c.compare(ComparePredicate::eq, x, 0);
  Value alone = c.where(c.compare(ComparePredicate::eq, zeros, 1), product);
  Value others = c.div(product, c.select(isZero, c.splat(x, 1), x));
  return c.select(isZero, alone, c.where(c.compare(ComparePredicate::eq, zeros, 0), others));
}

static void giveProduct(ScatterOp op, Cotangents &c) {
  Value self = op.getOperand(), updates = op.getUpdates();
  auto isZero = [&](Value x) { return c.compare(ComparePredicate::eq, x, 0); };
  auto nonzero = [&](Value x) { return c.select(isZero(x), c.splat(x, 1), x); };
  Value products = c.create<ScatterOp>(ScatterKind::prod, nonzero(self), nonzero(updates),
                                       op.getIndices(), op.getIndexedDims());
  Value zeros = collected(op, c, ones(c, isZero(self), self), ones(c, isZero(updates), updates));
  if (c.wants(0u))
    c.give(0, c.mul(c.of(), factorCotangent(c, self, products, zeros)));
  if (c.wants(1u)) {
    Value factor = factorCotangent(c, updates, gathered(op, c, products), gathered(op, c, zeros));
    c.give(1, whereInside(op, c, c.mul(gathered(op, c, c.of()), factor)));
  }
}

static LogicalResult scatterVjp(ScatterOp op, Cotangents &c) {
  bool sets = op.getKind() == ScatterKind::set;
  switch (op.getKind()) {
  case ScatterKind::max:
  case ScatterKind::min:
    giveExtremum(op, c);
    return success();
  case ScatterKind::prod:
    giveProduct(op, c);
    return success();
  default:
    break;
  }
  if (c.wants(0u))
    c.give(0, sets ? c.create<ScatterOp>(ScatterKind::set, c.of(), c.splat(op.getUpdates(), 0),
                                         op.getIndices(), op.getIndexedDims())
                   : c.of());
  if (c.wants(1u)) {
    c.give(1, whereInside(op, c, gathered(op, c, c.of())));
  }
  return success();
}

/// Gives the cotangents of sorted elements to the positions that they came from.
static LogicalResult sortVjp(SortOp op, Cotangents &c) {
  if (!c.of(0))
    return success();
  RankedTensorType type = op.getOperand().getType(), places = tensorType(op.getIndices());
  SmallVector<Value> indices;
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  for (int64_t dim : dims)
    indices.push_back(dim == static_cast<int64_t>(op.getDim()) ? Value(op.getIndices())
                                                               : c.create<IotaOp>(places, dim));
  c.give(0, c.create<ScatterOp>(ScatterKind::set, c.splat(op.getOperand(), 0), c.of(0),
                                ValueRange(indices), dims));
  return success();
}

/// PyTorch's own backward, from running the op once more, as another op that PyTorch runs. Its
/// attributes are those of the op, which results have cotangents, and which operands want
/// gradients.
static void giveByTorch(TorchFallbackOp op, Cotangents &c) {
  SmallVector<Value> operands(op.getOperands());
  SmallVector<std::string> given, wanted;
  SmallVector<Type> types;
  for (unsigned number : llvm::seq(op.getNumResults()))
    if (Value cotangent = c.of(number)) {
      given.push_back(std::to_string(number));
      operands.push_back(cotangent);
    }
  SmallVector<unsigned> places;
  for (auto [number, operand] : llvm::enumerate(op.getOperands()))
    if (c.wants(static_cast<unsigned>(number))) {
      wanted.push_back(std::to_string(number));
      types.push_back(RankedTensorType::get(tensorType(operand).getShape(),
                                            tensorType(operand).getElementType()));
      places.push_back(number);
    }
  std::string arguments = "{\"gradients\": " + op.getArguments().str() +
                          ", \"operands\": " + std::to_string(op.getNumOperands()) +
                          ", \"given\": [" + llvm::join(given, ", ") + "], \"wanted\": [" +
                          llvm::join(wanted, ", ") + "]}";
  auto gradients = TorchFallbackOp::create(c.getBuilder(), op.getLoc(), types, operands,
                                           op.getTarget(), arguments);
  for (auto [place, gradient] : llvm::zip_equal(places, gradients.getResults()))
    c.give(place, gradient);
}

/// Ops that draw random numbers depend on no values and have no gradient.
static LogicalResult fallbackVjp(TorchFallbackOp op, Cotangents &c) {
  StringRef name = op.getTarget();
  bool isRandom = llvm::any_of(ArrayRef<StringRef>{"aten.bernoulli.", "aten.rand.", "aten.randn.",
                                                   "aten.rand_like.", "aten.randn_like.",
                                                   "aten.empty.", "aten.empty_like."},
                               [&](StringRef prefix) { return name.starts_with(prefix); });
  if (!isRandom)
    giveByTorch(op, c);
  return success();
}

void weft::deriveIndex(MLIRContext *context) {
  derive<GatherOp, gatherVjp>(context);
  derive<ScatterOp, scatterVjp>(context);
  derive<SortOp, sortVjp>(context);
  derive<TorchFallbackOp, fallbackVjp>(context);
}
