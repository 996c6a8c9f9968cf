// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-join-products: short contractions that are summed up become one along a contracted
// dim, those of one rhs become one along the rows. TorchScript does the first to what unrolled
// recurrent networks leave, as a tree of matmuls.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/SumTerms.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"
#include <map>

namespace weft {
#define GEN_PASS_DEF_JOINPRODUCTS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

struct Sizes {
  int64_t rows, columns, contracted;
};

/// Contractions that differ in nothing but what they are joined along.
using Kind = std::tuple<Value, Type, Type, Type, Attribute, Attribute>;

struct JoinProducts : weft::impl::JoinProductsBase<JoinProducts> {
  using JoinProductsBase::JoinProductsBase;
  void runOnOperation() override;

private:
  void joinTerms(AddOp sum);
  void joinReductions(AddOp sum);
  void joinRows(Block &block);

  /// What has been joined along a dim, in that order, by what it is in any order.
  std::map<std::vector<const void *>, std::pair<SmallVector<Value>, int64_t>> joined;
};

} // namespace

static Sizes sizesOf(DotGeneralOp dot) {
  auto elements = [](Value value) { return tensorType(value).getNumElements(); };
  int64_t contracted = 1;
  for (int64_t dim : dot.getLhsContract())
    contracted *= tensorType(dot.getLhs()).getDimSize(dim);
  int64_t all = std::max<int64_t>(contracted, 1);
  return {elements(dot.getLhs()) / all, elements(dot.getRhs()) / all, contracted};
}

/// Elements that are to be saved for each that is copied: an accumulation whose result stays in a
/// cache costs less than a copy. Measured by benchmarks/joined_products.py, see
/// docs/measurements/0096-joined-products.md.
static constexpr int64_t savedInCache = 8, savedInMemory = 2;

/// Joined along the contracted dim, both operands are copied, and a sum is not read and written.
static bool isShortForItsSum(DotGeneralOp dot) {
  auto [rows, columns, contracted] = sizesOf(dot);
  return savedInCache * contracted * (rows + columns) < rows * columns;
}

/// Joined along the rows, the lhs is copied, the result lies in memory, and the rhs is not read.
static bool isShortForItsRhs(DotGeneralOp dot, int64_t l2Bytes) {
  auto [rows, columns, contracted] = sizesOf(dot);
  int64_t bits = dot.getType().getElementTypeBitWidth();
  bool inCache = contracted * columns * bits / CHAR_BIT <= l2Bytes;
  return (inCache ? savedInCache : savedInMemory) * rows * (contracted + columns) <
         contracted * columns;
}

static RankedTensorType resized(RankedTensorType type, int64_t dim, int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return type.clone(shape);
}

static Type but(Value value, int64_t dim) { return resized(tensorType(value), dim, 1); }

static Value concat(OpBuilder &builder, Location loc, ArrayRef<Value> values, int64_t dim) {
  int64_t size = 0;
  for (Value value : values)
    size += tensorType(value).getDimSize(dim);
  return ConcatOp::create(builder, loc, resized(tensorType(values.front()), dim, size), values,
                          dim);
}

/// Slices of one value in the order in which they lie, so that they are found to be one.
static void sortSlices(SmallVectorImpl<DotGeneralOp> &dots, unsigned operand) {
  auto sliceOf = [&](DotGeneralOp dot) {
    Value value = dot->getOperand(operand);
    if (auto reshape = value.getDefiningOp<ReshapeOp>())
      value = reshape.getOperand();
    return value.getDefiningOp<SliceOp>();
  };
  SliceOp first = sliceOf(dots.front());
  if (first && llvm::all_of(dots, [&](DotGeneralOp dot) {
        SliceOp slice = sliceOf(dot);
        return slice && slice.getOperand() == first.getOperand();
      }))
    llvm::sort(dots, [&](DotGeneralOp a, DotGeneralOp b) {
      return sliceOf(a).getStart() < sliceOf(b).getStart();
    });
}

/// The terms that are left, and what others have become.
static void replaceSum(AddOp sum, ArrayRef<Value> terms) {
  OpBuilder builder(sum);
  Value all = terms.front();
  for (Value term : terms.drop_front())
    all = AddOp::create(builder, sum.getLoc(), all, term);
  sum.replaceAllUsesWith(all);
  sum.erase();
}

static std::vector<const void *> inAnyOrder(ArrayRef<Value> values) {
  std::vector<const void *> key;
  for (Value value : values)
    key.push_back(value.getAsOpaquePointer());
  llvm::sort(key);
  return key;
}

void JoinProducts::joinTerms(AddOp sum) {
  llvm::MapVector<Kind, SmallVector<DotGeneralOp>> kinds;
  SmallVector<Value> terms;
  for (Value term : termsOf(sum)) {
    auto dot = term.getDefiningOp<DotGeneralOp>();
    if (!dot || dot->getBlock() != sum->getBlock() || !dot->hasOneUse() ||
        !dot.getLhsBatch().empty() || dot.getLhsContract().empty() || !isShortForItsSum(dot) ||
        !(dot.getType().getElementType().isF32() || dot.getType().getElementType().isF64())) {
      terms.push_back(term);
      continue;
    }
    Kind kind{nullptr,
              dot.getType(),
              but(dot.getLhs(), dot.getLhsContract().front()),
              but(dot.getRhs(), dot.getRhsContract().front()),
              dot.getLhsContractAttr(),
              dot.getRhsContractAttr()};
    kinds[kind].push_back(dot);
  }
  OpBuilder builder(sum);
  bool any = false;
  for (auto &[kind, dots] : kinds) {
    if (dots.size() == 1) {
      terms.push_back(dots.front());
      continue;
    }
    sortSlices(dots, 1);
    sortSlices(dots, 0);
    SmallVector<Location> locations;
    SmallVector<Value> lhs, rhs;
    for (DotGeneralOp dot : dots) {
      locations.push_back(dot.getLoc());
      lhs.push_back(dot.getLhs());
      rhs.push_back(dot.getRhs());
    }
    Location loc = builder.getFusedLoc(locations);
    DotGeneralOp first = dots.front();
    int64_t lhsDim = first.getLhsContract().front(), rhsDim = first.getRhsContract().front();
    joined.insert({inAnyOrder(lhs), {lhs, lhsDim}});
    joined.insert({inAnyOrder(rhs), {rhs, rhsDim}});
    terms.push_back(
        DotGeneralOp::create(builder, loc, first.getType(), concat(builder, loc, lhs, lhsDim),
                             concat(builder, loc, rhs, rhsDim), first.getLhsBatch(),
                             first.getRhsBatch(), first.getLhsContract(), first.getRhsContract()));
    numJoined += dots.size() - 1;
    any = true;
  }
  if (any)
    replaceSum(sum, terms);
}

void JoinProducts::joinReductions(AddOp sum) {
  llvm::MapVector<std::pair<Type, Attribute>, SmallVector<ReduceOp>> kinds;
  SmallVector<Value> terms;
  for (Value term : termsOf(sum)) {
    auto reduce = term.getDefiningOp<ReduceOp>();
    if (reduce && reduce.getKind() == ReduceKind::sum && reduce->hasOneUse())
      kinds[{reduce.getType(), reduce.getDimsAttr()}].push_back(reduce);
    else
      terms.push_back(term);
  }
  OpBuilder builder(sum);
  bool any = false;
  for (auto &[kind, reductions] : kinds) {
    SmallVector<Value> operands;
    for (ReduceOp reduce : reductions)
      operands.push_back(reduce.getOperand());
    auto found = joined.find(inAnyOrder(operands));
    ReduceOp first = reductions.front();
    if (found == joined.end() || !llvm::is_contained(first.getDims(), found->second.second)) {
      llvm::append_range(terms, reductions);
      continue;
    }
    // The same concat as that of the products, wherever that stands.
    Value all = concat(builder, first.getLoc(), found->second.first, found->second.second);
    terms.push_back(ReduceOp::create(builder, first.getLoc(), first.getType(), first.getKind(), all,
                                     first.getDims()));
    numJoined += reductions.size() - 1;
    any = true;
  }
  if (any)
    replaceSum(sum, terms);
}

/// The first dim of the lhs that is not contracted: also that of the result.
static std::optional<int64_t> rowDim(DotGeneralOp dot) {
  for (int64_t dim : llvm::seq<int64_t>(dot.getLhs().getType().getRank()))
    if (!llvm::is_contained(dot.getLhsContract(), dim))
      return dim;
  return std::nullopt;
}

/// Takes those off the front of `dots` that do not depend on the first of them, or on one another.
static SmallVector<DotGeneralOp> takeIndependent(SmallVectorImpl<DotGeneralOp> &dots) {
  SmallVector<DotGeneralOp> taken, left;
  DenseSet<Value> dependent;
  // Others that were joined may have moved them.
  llvm::sort(dots, [](DotGeneralOp a, DotGeneralOp b) { return a->isBeforeInBlock(b); });
  auto *next = dots.begin();
  for (Operation *op = *next; next != dots.end(); op = op->getNextNode()) {
    bool depends = op->walk([&](Operation *inner) {
                       bool reads = llvm::any_of(inner->getOperands(), [&](Value operand) {
                         return dependent.contains(operand);
                       });
                       return reads ? WalkResult::interrupt() : WalkResult::advance();
                     }).wasInterrupted();
    if (op == *next) {
      (depends ? left : taken).push_back(*next++);
      depends = true;
    }
    if (depends)
      dependent.insert(op->result_begin(), op->result_end());
  }
  dots = std::move(left);
  return taken;
}

static bool joinRowsOf(SmallVectorImpl<DotGeneralOp> &dots) {
  DotGeneralOp first = dots.front();
  IRRewriter rewriter(first->getContext());
  SmallVector<Value> lhs =
      llvm::map_to_vector(dots, [](auto dot) -> Value { return dot.getLhs(); });
  if (failed(moveValueDefinitions(rewriter, lhs, first)))
    return false;
  rewriter.setInsertionPoint(first);
  sortSlices(dots, 0);
  lhs = llvm::map_to_vector(dots, [](auto dot) -> Value { return dot.getLhs(); });
  Location loc = rewriter.getFusedLoc(
      llvm::map_to_vector(dots, [](DotGeneralOp dot) { return dot.getLoc(); }));
  Value all = concat(rewriter, loc, lhs, *rowDim(first));
  int64_t rows = 0;
  for (DotGeneralOp dot : dots)
    rows += dot.getType().getDimSize(0);
  auto product = DotGeneralOp::create(rewriter, loc, resized(first.getType(), 0, rows), all,
                                      first.getRhs(), first.getLhsBatch(), first.getRhsBatch(),
                                      first.getLhsContract(), first.getRhsContract());
  SmallVector<int64_t> start(product.getType().getRank()), step(start.size(), 1);
  for (DotGeneralOp dot : dots) {
    SmallVector<int64_t> limit(product.getType().getShape());
    limit[0] = start[0] + dot.getType().getDimSize(0);
    rewriter.replaceOpWithNewOp<SliceOp>(dot, dot.getType(), product, start, limit, step);
    start[0] = limit[0];
  }
  return true;
}

void JoinProducts::joinRows(Block &block) {
  llvm::MapVector<Kind, SmallVector<DotGeneralOp>> kinds;
  for (auto dot : block.getOps<DotGeneralOp>())
    if (std::optional<int64_t> dim = rowDim(dot);
        dim && dot.getLhsBatch().empty() && !dot->use_empty() && isShortForItsRhs(dot, l2Bytes))
      kinds[{dot.getRhs(), but(dot.getResult(), 0), but(dot.getLhs(), *dim), nullptr,
             dot.getLhsContractAttr(), dot.getRhsContractAttr()}]
          .push_back(dot);
  for (auto &[kind, dots] : kinds)
    while (dots.size() > 1)
      if (SmallVector<DotGeneralOp> taken = takeIndependent(dots);
          taken.size() > 1 && joinRowsOf(taken))
        numJoined += taken.size() - 1;
}

void JoinProducts::runOnOperation() {
  auto forEachSum = [&](auto join) {
    SmallVector<AddOp> sums;
    getOperation().walk([&](AddOp sum) {
      if (!isPartOfSum(sum))
        sums.push_back(sum);
    });
    for (AddOp sum : sums)
      join(sum);
  };
  joined.clear();
  forEachSum([&](AddOp sum) { joinTerms(sum); });
  if (!joined.empty())
    forEachSum([&](AddOp sum) { joinReductions(sum); });
  getOperation().walk([&](Block *block) { joinRows(*block); });
}
