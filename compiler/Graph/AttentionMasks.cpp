// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Canonical forms of attention's masks: what can be said by `causal`, or by a boolean, or need
// not be said at all, is not left to a tensor. Hidden keys then cost no work.
#include "compiler/Graph/AffineElements.h"
#include "compiler/Graph/ConstantFolding.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace weft;

static void replaceMask(AttentionOp op, Value mask, bool causal, PatternRewriter &rewriter) {
  FloatAttr hidden = op.getHiddenScoreAttr();
  if (causal && hidden)
    hidden = rewriter.getF64FloatAttr(-std::numeric_limits<double>::infinity());
  rewriter.replaceOpWithNewOp<AttentionOp>(op, op.getType(), op.getQuery(), op.getKey(),
                                           op.getValue(), mask, causal, op.getScale(), hidden);
}

/// A mask that is spread over heads, as what is spread and what its dims become.
struct SpreadMask {
  explicit SpreadMask(Value mask) : mask(mask), type(cast<RankedTensorType>(mask.getType())) {
    llvm::append_range(dims, llvm::seq<int64_t>(0, type.getRank()));
    if (auto broadcast = mask.getDefiningOp<BroadcastInDimOp>()) {
      this->mask = broadcast.getOperand();
      dims = llvm::to_vector(broadcast.getDims());
    }
  }

  /// `other`, of the spread mask's shape, instead of it.
  Value spread(Value other, PatternRewriter &rewriter) const {
    auto result = RankedTensorType::get(type.getShape(), getElementTypeOrSelf(other.getType()));
    if (other.getType() == result)
      return other;
    return BroadcastInDimOp::create(rewriter, other.getLoc(), result, other, dims);
  }

  Value mask;
  RankedTensorType type;
  SmallVector<int64_t> dims;
};

/// A mask that hides nothing is none.
static LogicalResult dropFullMask(AttentionOp op, PatternRewriter &rewriter) {
  Attribute constant;
  if (!op.getMask() || !matchPattern(op.getMask(), m_Constant(&constant)))
    return rewriter.notifyMatchFailure(op, "no constant mask");
  if (!op.getMask().getType().getElementType().isInteger(1) || !isIntSplat(constant, -1))
    return rewriter.notifyMatchFailure(op, "not all true");
  replaceMask(op, Value(), op.getCausal(), rewriter);
  return success();
}

/// Whether `condition`, whose dims are `dims` of the scores, or its complement, holds where
/// key <= query.
static bool isCausality(Value condition, ArrayRef<int64_t> dims, int64_t rank,
                        bool complement = false) {
  std::optional<AffineElements> lag = affineComparison(condition);
  if (lag && complement)
    lag = lag->complement();
  if (!lag || lag->base != 0)
    return false;
  SmallVector<int64_t> steps(rank, 0), wanted(rank, 0);
  for (auto [dim, step] : llvm::zip_equal(dims, lag->steps))
    steps[dim] = step;
  wanted[rank - 2] = -1;
  wanted[rank - 1] = 1;
  return steps == wanted;
}

/// Adding 0 here and -inf there is keeping and hiding. The least float is another matter: a
/// row of nothing else is an average. Nor is it replacing NaN, unless nobody looks behind the
/// query.
static LogicalResult addedMaskIsBoolean(AttentionOp op, PatternRewriter &rewriter) {
  if (!op.getMask())
    return rewriter.notifyMatchFailure(op, "no mask");
  SpreadMask added(op.getMask());
  auto select = added.mask.getDefiningOp<SelectOp>();
  Attribute yes, no;
  if (!select || !matchPattern(select.getOnTrue(), m_Constant(&yes)) ||
      !matchPattern(select.getOnFalse(), m_Constant(&no)))
    return rewriter.notifyMatchFailure(op, "mask is not one of two constants");
  auto isChoice = [](Attribute kept, Attribute hidden) {
    return isFloatSplat(kept, 0.0) &&
           isFloatSplat(hidden, -std::numeric_limits<double>::infinity());
  };
  Value kept = select.getCondition();
  bool hides = isChoice(no, yes);
  if (!hides && !isChoice(yes, no))
    return rewriter.notifyMatchFailure(op, "not 0 and -inf");
  if (op.getHiddenScore() && !isCausality(kept, added.dims, added.type.getRank(), hides))
    return rewriter.notifyMatchFailure(op, "scores are replaced by a mask of i1");
  if (hides)
    kept = NotOp::create(rewriter, select.getLoc(), kept);
  replaceMask(op, added.spread(kept, rewriter), op.getCausal(), rewriter);
  return success();
}

static void collectConjuncts(Value mask, SmallVectorImpl<Value> &conjuncts) {
  auto both = mask.getDefiningOp<AndOp>();
  if (!both) {
    conjuncts.push_back(mask);
    return;
  }
  collectConjuncts(both.getLhs(), conjuncts);
  collectConjuncts(both.getRhs(), conjuncts);
}

/// Where a mask is a conjunction, its causal condition becomes the attribute `causal`. A finite
/// number in place of hidden scores may be treated as -inf if its exponential is zero beside the
/// score of the query's own key.
static LogicalResult takeCausality(AttentionOp op, PatternRewriter &rewriter) {
  if (!op.getMask() || !op.getMask().getType().getElementType().isInteger(1))
    return rewriter.notifyMatchFailure(op, "no boolean mask");
  SpreadMask spread(op.getMask());
  SmallVector<Value> conjuncts;
  collectConjuncts(spread.mask, conjuncts);
  auto found = llvm::find_if(conjuncts, [&](Value conjunct) {
    return isCausality(conjunct, spread.dims, spread.type.getRank());
  });
  if (found == conjuncts.end())
    return rewriter.notifyMatchFailure(op, "no condition that keys precede queries");
  conjuncts.erase(found);
  constexpr double noWeight = -1e30;
  if (std::optional<APFloat> hidden = op.getHiddenScore(); hidden && hidden->isFinite())
    if (hidden->convertToDouble() > noWeight || !conjuncts.empty())
      return rewriter.notifyMatchFailure(op, "hidden scores may have weights");
  Value rest;
  for (Value conjunct : conjuncts)
    rest = rest ? AndOp::create(rewriter, op.getLoc(), rest, conjunct).getResult() : conjunct;
  replaceMask(op, rest ? spread.spread(rest, rewriter) : rest, /*causal=*/true, rewriter);
  return success();
}

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(dropFullMask);
  patterns.add(addedMaskIsBoolean);
  patterns.add(takeCausality);
}
