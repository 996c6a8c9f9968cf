// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Merges a sum of convolutions of one input into one convolution with the sum of the weights, which
// @bind can compute. So blocks trained with several branches but run with one (Ding et al., RepVGG,
// 2021) need no manual reparametrization.
#include "compiler/Graph/ComputeBuilder.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Transforms/ConvPadding.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/PreparedValues.h"

namespace weft {
#define GEN_PASS_DEF_MERGECONVS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

struct Summand {
  Value value;
  bool negated;
};

/// A convolution to be merged: a weight, and the offset of its window in that of the host.
struct Branch {
  Value weight; ///< (o, c / groups, k...), or (c): factors of the input's channels
  SmallVector<int64_t> place;
  bool negated;
};

/// A convolution, and all branches merged into it, including itself.
struct Merged {
  ConvOp host;
  SmallVector<Branch> branches;
};

/// An input scaled by a factor per channel.
struct ScaledInput {
  Value input;
  Value factors; ///< (c), or null

  static ScaledInput of(Value value) {
    auto product = value.getDefiningOp<MulOp>();
    return product && product->hasOneUse()
               ? ScaledInput{product.getLhs(), repeatedForChannels(product.getRhs())}
               : ScaledInput();
  }
};

class Sum {
public:
  Sum(Operation *root, const PreparedValues &prepared);

  /// Groups convolutions that can be merged. Returns whether there are any.
  bool findBranches();
  /// Builds the merged sum at the position of its root.
  Value rewrite();

private:
  /// The convolutions, large windows first, as small ones are merged into them.
  SmallVector<ConvOp> hosts() const;
  std::optional<Branch> asBranch(const Summand &summand, ConvOp host) const;
  Value mergedConv(ComputeBuilder &b, OpBuilder &builder, Merged merged) const;

  Operation *root;
  const PreparedValues &prepared;
  SmallVector<Summand> summands;
  SmallVector<Merged> convs;
  SmallVector<Summand> biases; ///< (c) each
  SmallVector<Summand> others;
};

struct MergeConvs : weft::impl::MergeConvsBase<MergeConvs> {
  void runOnOperation() override;
};

} // namespace

static bool isSum(Operation *op) { return isa<AddOp, SubOp>(op); }

Sum::Sum(Operation *root, const PreparedValues &prepared) : root(root), prepared(prepared) {
  SmallVector<Summand> stack{{root->getResult(0), false}};
  while (!stack.empty()) {
    Summand summand = stack.pop_back_val();
    Operation *op = summand.value.getDefiningOp();
    if (op && isSum(op) && (op == root || op->hasOneUse())) {
      stack.push_back({op->getOperand(1), summand.negated != isa<SubOp>(op)});
      stack.push_back({op->getOperand(0), summand.negated});
    } else {
      summands.push_back(summand);
    }
  }
}

/// The offset of a window, padded by `padLow` before the input, in the window of `host`; none if it
/// reads elements that `host` does not.
static std::optional<SmallVector<int64_t>> placeInWindow(ConvOp host, ArrayRef<int64_t> window,
                                                         ArrayRef<int64_t> padLow,
                                                         ArrayRef<int64_t> dilations) {
  SmallVector<int64_t> place;
  ArrayRef<int64_t> whole = host.getWeight().getType().getShape().drop_front(2);
  for (auto [dim, size] : llvm::enumerate(window)) {
    int64_t ahead = host.getPadLow()[dim] - padLow[dim], step = host.getDilations()[dim];
    bool stepsAgree = size == 1 || dilations[dim] == step;
    if (!stepsAgree || ahead < 0 || ahead % step != 0 || ahead / step + size > whole[dim])
      return std::nullopt;
    place.push_back(ahead / step);
  }
  return place;
}

std::optional<Branch> Sum::asBranch(const Summand &summand, ConvOp host) const {
  ArrayRef<int64_t> shape = host.getWeight().getType().getShape();
  if (auto conv = summand.value.getDefiningOp<ConvOp>()) {
    ArrayRef<int64_t> own = conv.getWeight().getType().getShape();
    // The sum of narrow weights would be rounded, which f32 results reveal.
    if (conv.getWeight().getType().getElementType() != conv.getType().getElementType() ||
        !conv->hasOneUse() || !prepared.contains(conv.getWeight()) ||
        conv.getInput() != host.getInput() || conv.getStrides() != host.getStrides() ||
        conv.getGroups() != host.getGroups() || own.take_front(2) != shape.take_front(2))
      return std::nullopt;
    auto place = placeInWindow(host, own.drop_front(2), conv.getPadLow(), conv.getDilations());
    if (place)
      return Branch{conv.getWeight(), *place, summand.negated};
    return std::nullopt;
  }
  ScaledInput scaled = ScaledInput::of(summand.value);
  bool isOneForEachChannel = shape[1] == 1 && shape[0] == host.getInput().getType().getDimSize(1);
  bool stepsByOne = llvm::all_of(host.getStrides(), [](int64_t stride) { return stride == 1; });
  if (!scaled.factors || !prepared.contains(scaled.factors) || scaled.input != host.getInput() ||
      !isOneForEachChannel || !stepsByOne)
    return std::nullopt;
  SmallVector<int64_t> ones(shape.size() - 2, 1), none(shape.size() - 2, 0);
  if (auto place = placeInWindow(host, ones, none, ones))
    return Branch{scaled.factors, *place, summand.negated};
  return std::nullopt;
}

SmallVector<ConvOp> Sum::hosts() const {
  auto windowOf = [](ConvOp conv) {
    return ShapedType::getNumElements(conv.getWeight().getType().getShape().drop_front(2));
  };
  SmallVector<ConvOp> found;
  for (const Summand &summand : summands)
    if (auto conv = summand.value.getDefiningOp<ConvOp>(); conv && asBranch(summand, conv))
      found.push_back(conv);
  llvm::sort(found, [&](ConvOp lhs, ConvOp rhs) {
    int64_t left = windowOf(lhs), right = windowOf(rhs);
    return left != right ? left > right : lhs->isBeforeInBlock(rhs);
  });
  return found;
}

bool Sum::findBranches() {
  llvm::DenseSet<Value> taken;
  for (ConvOp host : hosts()) {
    if (taken.contains(host))
      continue;
    Merged merged{host, {}};
    SmallVector<Value> members;
    for (const Summand &summand : summands) {
      std::optional<Branch> branch = asBranch(summand, host);
      if (!branch || taken.contains(summand.value))
        continue;
      merged.branches.push_back(*branch);
      members.push_back(summand.value);
    }
    if (members.size() < 2)
      continue;
    taken.insert_range(members);
    convs.push_back(std::move(merged));
  }
  for (const Summand &summand : summands) {
    if (taken.contains(summand.value))
      continue;
    Value bias = repeatedForChannels(summand.value);
    if (bias && prepared.contains(bias))
      biases.push_back({bias, summand.negated});
    else
      others.push_back(summand);
  }
  return !convs.empty();
}

Value Sum::mergedConv(ComputeBuilder &b, OpBuilder &builder, Merged merged) const {
  RankedTensorType type = merged.host.getWeight().getType();
  Value total;
  for (const Branch &branch : merged.branches) {
    Value weight = b.enter(branch.weight);
    SmallVector<int64_t> shape(tensorType(weight).getShape());
    if (shape.size() == 1) {
      shape.resize(type.getRank(), 1);
      weight = b.reshape(weight, shape);
    }
    if (shape != type.getShape()) {
      SmallVector<int64_t> low{0, 0}, high;
      llvm::append_range(low, branch.place);
      for (auto [dim, size] : llvm::enumerate(shape))
        high.push_back(type.getDimSize(dim) - size - low[dim]);
      weight = paddedByZeros(builder, weight.getLoc(), weight, low, high);
    }
    auto wide = withLayout(tensorType(weight), layoutOf(type));
    if (weight.getType() != wide)
      weight = b.create<RelayoutOp>(wide, weight);
    if (branch.negated)
      weight = b.create<NegOp>(weight);
    total = total ? b.create<AddOp>(total, weight) : weight;
  }
  total = b.leave(total, type.getElementType());
  auto conv = cast<ConvOp>(builder.clone(*merged.host));
  conv.getWeightMutable().assign(total);
  return conv.getResult();
}

Value Sum::rewrite() {
  SmallVector<Location> locations;
  for (const Summand &summand : summands)
    locations.push_back(summand.value.getLoc());
  OpBuilder builder(root);
  ComputeBuilder b(builder, builder.getFusedLoc(locations), builder.getF64Type());
  Type element = tensorType(root->getResult(0)).getElementType();
  Value total;
  auto add = [&](Value value) { total = total ? b.create<AddOp>(total, value) : value; };
  for (const Merged &merged : convs)
    add(mergedConv(b, builder, merged));
  Value shift;
  for (const Summand &bias : biases) {
    Value wide = b.enter(bias.value);
    if (bias.negated)
      wide = b.create<NegOp>(wide);
    shift = shift ? b.create<AddOp>(shift, wide) : wide;
  }
  if (shift)
    add(b.broadcast(b.leave(shift, element), total, {1}));
  for (const Summand &other : others)
    total =
        other.negated ? b.create<SubOp>(total, other.value) : b.create<AddOp>(total, other.value);
  return total;
}

void MergeConvs::runOnOperation() {
  if (getOperation().isExternal())
    return;
  PreparedValues prepared(getOperation());
  SmallVector<Operation *> roots;
  for (Operation &op : getOperation().getOps()) {
    if (!isSum(&op))
      continue;
    Type element = tensorType(op.getResult(0)).getElementType();
    bool isPart = op.hasOneUse() && isSum(*op.user_begin());
    if (!isPart && (element.isF32() || element.isF64()))
      roots.push_back(&op);
  }
  for (Operation *root : roots) {
    Sum sum(root, prepared);
    if (!sum.findBranches())
      continue;
    ++numSums;
    root->replaceAllUsesWith(ValueRange{sum.rewrite()});
    root->erase();
  }
}
