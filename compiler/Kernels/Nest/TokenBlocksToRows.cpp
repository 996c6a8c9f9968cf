// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows computed from token blocks and stored row-major: norms and elementwise kernels after
// contractions. Tokens are the lanes, so that reads are contiguous and each lane computes its own
// reduction; results are transposed in registers.
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Emission/RegisterTranspose.h"
#include "compiler/Kernels/Nest/TokenBlockTranspose.h"
#include "llvm/Support/MathExtras.h"
#include <utility>

using namespace mlir;
using namespace weft;

namespace {
class TokenBlocksToRows : public TokenBlockTranspose {
public:
  using TokenBlockTranspose::TokenBlockTranspose;

  /// Fails if a result needs more than one row, or a reduction depends on the feature.
  LogicalResult match();
  TransposeProblem problem() const override;
  void emit();

private:
  int64_t cellCount() const override {
    return space.count(outer) * llvm::divideCeil(tokens, width);
  }
  bool rowByRow() const override { return false; }
  int64_t tokenBlock() const;
  void moveToInner();
  void emitCell(int64_t valid);

  SmallVector<unsigned> outer; ///< grid dims
  SmallVector<unsigned> inner; ///< dims iterated after the reductions, within a cell of tokens
  unsigned block = 0, part = 0;
  int64_t tokens = 0, inBlock = 0; ///< of a block, or 0
};
} // namespace

/// The smallest token block, of those that are multiples of the width, in the layouts that are
/// read; 0 if there is none.
int64_t TokenBlocksToRows::tokenBlock() const {
  IndexSpace whole(kernel.emitted.getContext());
  Index all;
  for (int64_t size : tensorType(target.tensor).getShape())
    all.push_back(whole.addDim(size));
  unsigned token = all.size() - 2;
  AccessAnalysis ofAll = demandOf(target.tensor, all, whole);
  int64_t least = 0;
  auto visit = [&](ArrayRef<Access> accesses) {
    for (const Access &access : accesses)
      if (access.position)
        access.position->walk([&](AffineExpr expr) {
          auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
          if (!binary || expr.getKind() != AffineExprKind::Mod || !expr.isFunctionOfDim(token))
            return;
          int64_t size = cast<AffineConstantExpr>(binary.getRHS()).getValue();
          if (size % width == 0 && (least == 0 || size < least))
            least = size;
        });
  };
  visit(ofAll.accesses);
  for (const ReductionDemand &reduction : ofAll.reductions)
    visit(reduction.accesses);
  return least;
}

LogicalResult TokenBlocksToRows::match() {
  RankedTensorType type = tensorType(target.tensor);
  int64_t rank = type.getRank();
  if (!isRows())
    return failure();
  tokens = type.getDimSize(rank - 2);
  inBlock = tokenBlock();
  int64_t size = inBlock ? inBlock : width;
  for (int64_t extent : type.getShape().drop_back(2))
    index.push_back(extent == 1 ? space.constant(0) : loopOver(extent, outer.emplace_back()));
  AffineExpr ofBlock = loopOver(llvm::divideCeil(tokens, size), block);
  AffineExpr ofPart = loopOver(size / width, part);
  AffineExpr ofLane = loopOver(width, lane);
  index.push_back(space.simplify(ofBlock * size + ofPart * width + ofLane));
  index.push_back(loopOver(type.getDimSize(rank - 1), feature));
  demand = demandOf(target.tensor, index, space);
  if (!demand.reductions.empty())
    moveToInner();
  points = space.count(outer) * tokens;
  return success(!demand.reducesFor(feature) && demand.scans.empty());
}

TransposeProblem TokenBlocksToRows::problem() const {
  return {space,
          demand.reductions,
          cellCount(),
          /*rowByRow=*/false,
          std::min(tokens, space.extent(feature)),
          stridedAlongTokens(),
          stridedAlongFeatures(),
          /*scratchBytes=*/0,
          /*isOwn=*/inBlock || !demand.reductions.empty()};
}

/// Features may span several dims, as in channel blocks: on the grid, each would repeat the
/// reduction.
void TokenBlocksToRows::moveToInner() {
  for (unsigned dim : std::exchange(outer, {}))
    (demand.reducesFor(dim) ? outer : inner).push_back(dim);
}

void TokenBlocksToRows::emit() {
  int64_t ofTokens = llvm::divideCeil(tokens, width), tail = tokens % width;
  SmallVector<unsigned> known = outer;
  known.append({block, part});
  kernel.forEachPiece(cellCount(), schedule.claim, [&](Value number) {
    Value cell = remainderOf(number, ofTokens);
    setFlat(point, outer, dividedBy(number, ofTokens));
    setFlat(point, {block, part}, cell);
    emitIfCounting(known, [&] {
      if (tail == 0)
        return emitCell(width);
      emitIf(
          builder, loc, is(arith::CmpIPredicate::eq, cell, constant(ofTokens - 1)),
          [&] { emitCell(tail); }, [&] { emitCell(width); });
    });
  });
}

void TokenBlocksToRows::emitCell(int64_t valid) {
  point.setDim(lane, constant(0));
  point.setLanes({static_cast<int64_t>(lane), width, 1, valid});
  emitReductions();
  emitLoops(point, inner, [&] {
    forEachVector([&](Value first, int64_t count) {
      emitSquare(
          point, lane, feature, first, count, valid, width,
          [&] { return point.asVectors(point.emitAt(target.tensor, index)).front(); },
          [&](const Emitted &row) { store(row); });
    });
  });
  point.setLanes(Lanes());
}

std::optional<TransposeProblem> weft::matchTokenBlocksToRows(KernelFunction &kernel,
                                                             bool interior) {
  return matchTransposed<TokenBlocksToRows>(kernel, interior);
}

LogicalResult weft::emitTokenBlocksToRows(KernelFunction &kernel) {
  return emitTransposed<TokenBlocksToRows>(kernel);
}
