// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/FlattenedConcats.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Graph.h"

using namespace mlir;
using namespace weft;

namespace {

/// Elements `start` to `limit` of `value` along a dim.
struct Part {
  Value value;
  int64_t start, limit;
};

} // namespace

/// Whether `slice` takes a part along `dim` and everything along the others.
static bool isPartAlong(SliceOp slice, int64_t dim) {
  ArrayRef<int64_t> shape = tensorType(slice.getOperand()).getShape();
  for (auto [other, size] : llvm::enumerate(shape))
    if (slice.getStride()[other] != 1 ||
        (static_cast<int64_t>(other) != dim &&
         (slice.getStart()[other] != 0 || slice.getLimit()[other] != size)))
      return false;
  return true;
}

/// Whether only one other concat reads it, by itself or through slices.
static bool isPrivate(ConcatOp concat) {
  llvm::SmallPtrSet<Operation *, 2> readers;
  for (Operation *user : concat->getUsers()) {
    if (isa<SliceOp>(user))
      readers.insert(user->user_begin(), user->user_end());
    else
      readers.insert(user);
  }
  return readers.size() == 1 && isa<ConcatOp>(*readers.begin());
}

/// The parts that make up `whole`, taken from the operands of private concats along `dim`, and of
/// the one that is cut if it is `known`.
static SmallVector<Part> partsOf(Part whole, int64_t dim, ConcatOp known) {
  SmallVector<Part> found, pending{whole};
  while (!pending.empty()) {
    Part part = pending.pop_back_val();
    if (part.start == part.limit)
      continue;
    if (auto slice = part.value.getDefiningOp<SliceOp>(); slice && isPartAlong(slice, dim)) {
      int64_t first = slice.getStart()[dim];
      pending.push_back({slice.getOperand(), part.start + first, part.limit + first});
      continue;
    }
    auto concat = part.value.getDefiningOp<ConcatOp>();
    if (!concat || static_cast<int64_t>(concat.getDim()) != dim ||
        (concat != known && !isPrivate(concat))) {
      found.push_back(part);
      continue;
    }
    SmallVector<Part> inner;
    int64_t begin = 0;
    for (Value operand : concat.getOperands()) {
      int64_t size = tensorType(operand).getDimSize(dim);
      int64_t start = std::max(part.start - begin, int64_t(0));
      int64_t limit = std::min(part.limit - begin, size);
      if (start < limit)
        inner.push_back({operand, start, limit});
      begin += size;
    }
    llvm::append_range(pending, llvm::reverse(inner));
  }
  return found;
}

static Value take(OpBuilder &builder, Location loc, const Part &part, int64_t dim) {
  RankedTensorType type = tensorType(part.value);
  if (part.start == 0 && part.limit == type.getDimSize(dim))
    return part.value;
  SmallVector<int64_t> start(type.getRank(), 0), limit(type.getShape()), stride(type.getRank(), 1);
  start[dim] = part.start;
  limit[dim] = part.limit;
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = part.limit - part.start;
  return SliceOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()),
                         part.value, start, limit, stride);
}

/// Whether an operand is a private concat along the same dim, or a part of one that stays where it
/// was.
static bool extendsConcat(ConcatOp concat) {
  int64_t dim = concat.getDim(), begin = 0;
  for (Value operand : concat.getOperands()) {
    Value source = operand;
    auto slice = operand.getDefiningOp<SliceOp>();
    if (slice && isPartAlong(slice, dim) && slice.getStart()[dim] == begin)
      source = slice.getOperand();
    auto inner = source.getDefiningOp<ConcatOp>();
    if (inner && static_cast<int64_t>(inner.getDim()) == dim && isPrivate(inner))
      return true;
    begin += tensorType(operand).getDimSize(dim);
  }
  return false;
}

static void flatten(ConcatOp concat) {
  int64_t dim = concat.getDim();
  OpBuilder builder(concat);
  SmallVector<Value> operands;
  for (const Part &part : partsOf(
           {concat.getResult(), 0, tensorType(concat.getResult()).getDimSize(dim)}, dim, concat))
    operands.push_back(take(builder, concat.getLoc(), part, dim));
  Value whole = operands.size() == 1 ? operands.front()
                                     : ConcatOp::create(builder, concat.getLoc(), concat.getType(),
                                                        operands, concat.getDimAttr())
                                           .getResult();
  concat.getResult().replaceAllUsesWith(whole);
  concat.erase();
}

/// The operand of a concat that a slice lies in.
static void narrow(SliceOp slice) {
  auto concat = slice.getOperand().getDefiningOp<ConcatOp>();
  if (!concat || !isPartAlong(slice, concat.getDim()) ||
      slice.getType() == slice.getOperand().getType())
    return;
  int64_t dim = concat.getDim();
  SmallVector<Part> parts =
      partsOf({slice.getResult(), 0, slice.getType().getDimSize(dim)}, dim, concat);
  if (parts.size() != 1)
    return;
  OpBuilder builder(slice);
  slice.getResult().replaceAllUsesWith(take(builder, slice.getLoc(), parts.front(), dim));
  slice.erase();
}

void weft::flattenConcats(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (auto slice = dyn_cast<SliceOp>(op))
      narrow(slice);
  // From the last one on, so that those which it is made of are gone when they come.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!isa<ConcatOp, SliceOp>(op))
      continue;
    if (op.use_empty())
      op.erase();
    else if (auto concat = dyn_cast<ConcatOp>(op); concat && extendsConcat(concat))
      flatten(concat);
  }
}
