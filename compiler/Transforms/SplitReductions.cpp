// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Splits reductions of many elements to few, as of a loss, in two: the first reduces parts in
// parallel, the second their results. Parts depend on the shape alone, so results do not depend on
// the number of threads.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"

namespace weft {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

/// Fewer results leave threads idle; fewer terms do not amortize another kernel.
constexpr int64_t manyResults = 8, manyTerms = 1 << 16;
constexpr int64_t fewestParts = 16, mostParts = 1024, fewestTermsOfPart = 256;

/// Splits the reduced dim `dim` into `parts`, which are reduced first.
struct Split {
  int64_t dim, parts;
};

struct SplitReductions : weft::impl::SplitReductionsBase<SplitReductions> {
  void runOnOperation() override {
    SmallVector<ReduceOp> reductions;
    getOperation().walk([&](ReduceOp reduce) { reductions.push_back(reduce); });
    for (ReduceOp reduce : reductions)
      if (std::optional<Split> split = choose(reduce)) {
        apply(reduce, *split);
        ++numSplit;
      }
  }

private:
  static std::optional<Split> choose(ReduceOp reduce);
  static void apply(ReduceOp reduce, Split split);
};

} // namespace

/// Chooses the outermost dim with a suitable size for the number of parts, or that divides into
/// such.
std::optional<Split> SplitReductions::choose(ReduceOp reduce) {
  RankedTensorType type = reduce.getOperand().getType();
  // Half-precision partial results would be rounded once more.
  bool isRounded = type.getElementType().isBF16() || type.getElementType().isF16();
  int64_t terms = type.getNumElements();
  if (layoutOf(type) || isRounded || terms < manyTerms ||
      reduce.getType().getNumElements() >= manyResults)
    return std::nullopt;
  for (int64_t dim : reduce.getDims()) {
    int64_t size = type.getDimSize(dim);
    if (size >= fewestParts && size <= mostParts && terms / size >= fewestTermsOfPart)
      return Split{dim, size};
    for (int64_t parts = 4 * fewestParts; parts >= fewestParts; --parts)
      if (size % parts == 0 && size > parts)
        return Split{dim, parts};
  }
  return std::nullopt;
}

void SplitReductions::apply(ReduceOp reduce, Split split) {
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  auto [dim, parts] = split;
  Value cut = reduce.getOperand();
  SmallVector<int64_t> shape(reduce.getOperand().getType().getShape());
  bool isCut = shape[dim] != parts;
  if (isCut) {
    shape[dim] /= parts;
    shape.insert(shape.begin() + dim, parts);
    auto type = RankedTensorType::get(shape, reduce.getType().getElementType());
    cut = ReshapeOp::create(builder, loc, type, cut);
  }
  SmallVector<int64_t> inner;
  int64_t ahead = 0;
  for (int64_t other : reduce.getDims()) {
    ahead += other < dim;
    if (other != dim || isCut)
      inner.push_back(isCut && other >= dim ? other + 1 : other);
  }
  Value first = ReduceOp::create(builder, loc, reduce.getKind(), cut, inner);
  Value second = ReduceOp::create(builder, loc, reduce.getKind(), first, {dim - ahead});
  reduce.getResult().replaceAllUsesWith(second);
  reduce.erase();
}
