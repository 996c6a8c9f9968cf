// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows that are stored feature by feature, of memory that lies token by token: norms and
// elementwise kernels that leave blocks of tokens. Tokens are the lanes, so that every read is a
// vector and each lane reduces for itself; what is stored goes through registers a square at a
// time.
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Emission/Emitters.h"
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

  /// Fails unless more is read as vectors along the tokens than along the features.
  LogicalResult match();
  void emit(const WorkEstimate &work);

private:
  int64_t tokenBlock() const;
  void moveToInner();
  void emitCell(int64_t valid);

  SmallVector<unsigned> outer; ///< on the grid
  SmallVector<unsigned> inner; ///< behind the reductions: their tokens go through these as well
  unsigned block = 0, part = 0;
  int64_t tokens = 0;
};
} // namespace

/// The smallest of the blocks in which the tokens of what is read lie, in whole vectors, or 0
/// where they lie in no blocks.
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
  if (!isRows() || type.getDimSize(rank - 2) < width / 2 || type.getDimSize(rank - 1) < width / 2)
    return failure();
  tokens = type.getDimSize(rank - 2);
  int64_t inBlock = tokenBlock(), size = inBlock ? inBlock : width;
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
  // Without either, the loops of a nest transpose as well.
  bool isOwn = inBlock || !demand.reductions.empty();
  return success(isOwn && !demand.reducesFor(feature) && demand.scans.empty() &&
                 stridedAlongTokens() < stridedAlongFeatures());
}

/// Features may be divided among several dims, as in blocks of channels: on the grid, all would
/// reduce the same tokens again.
void TokenBlocksToRows::moveToInner() {
  for (unsigned dim : std::exchange(outer, {}))
    (demand.reducesFor(dim) ? outer : inner).push_back(dim);
}

void TokenBlocksToRows::emit(const WorkEstimate &work) {
  int64_t ofTokens = llvm::divideCeil(tokens, width), tail = tokens % width;
  int64_t cells = space.count(outer) * ofTokens;
  kernel.forEachPiece(cells, work.leastPieces(cells), work.serial, [&](Value number) {
    Value cell = remainderOf(number, ofTokens);
    setFlat(point, outer, dividedBy(number, ofTokens));
    setFlat(point, {block, part}, cell);
    if (tail == 0)
      return emitCell(width);
    emitIf(
        builder, loc, is(arith::CmpIPredicate::eq, cell, constant(ofTokens - 1)),
        [&] { emitCell(tail); }, [&] { emitCell(width); });
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

LogicalResult weft::emitTokenBlocksToRows(KernelFunction &kernel) {
  return emitTransposed<TokenBlocksToRows>(kernel);
}
