// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows that are stored feature by feature, of memory that lies token by token: norms and
// elementwise kernels that leave blocks of tokens. Tokens are the lanes, so that every read is a
// vector and each lane reduces for itself; what is stored goes through registers a square at a
// time.
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Emitters.h"
#include "compiler/Kernels/IndexArithmetic.h"
#include "compiler/Kernels/OneTarget.h"
#include "compiler/Kernels/Reductions.h"
#include "compiler/Kernels/Transposition.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {
class LanesToRows : private IndexArithmetic {
public:
  LanesToRows(KernelFunction &kernel, const StoreTarget &target)
      : IndexArithmetic(kernel.builder, kernel.loc), kernel(kernel), target(target),
        space(kernel.emitted.getContext()), point(kernel.pointEmitter(space)) {}

  /// Fails unless more is read as vectors along the tokens than along the features.
  LogicalResult match();
  void emit(const PointWork &work);
  int64_t flops() const;

private:
  int64_t tokenBlock() const;
  bool readsAlongTokens() const;
  void emitCell(int64_t valid);
  void emitSquare(Value first, int64_t columns, Value firstLane, int64_t valid);

  KernelFunction &kernel;
  const StoreTarget &target;
  IndexSpace space;
  PointEmitter point;
  Demand demand;
  ReducedValues reduced;
  Index index;
  SmallVector<unsigned> outer;
  unsigned block = 0, part = 0, lane = 0, feature = 0;
  int64_t tokens = 0, width = 1;
};
} // namespace

/// The smallest of the blocks in which the tokens of what is read lie, in whole vectors, or 0
/// where they lie in no blocks.
int64_t LanesToRows::tokenBlock() const {
  IndexSpace whole(kernel.emitted.getContext());
  Index all;
  for (int64_t size : tensorType(target.tensor).getShape())
    all.push_back(whole.addDim(size));
  unsigned token = all.size() - 2;
  Demand ofAll = demandOf(target.tensor, all, whole);
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

LogicalResult LanesToRows::match() {
  RankedTensorType type = tensorType(target.tensor);
  int64_t rank = type.getRank();
  width = kernel.target.lanes(32);
  if (rank < 2 || type.getNumElements() == 0 || !type.getElementType().isF32() ||
      type.getDimSize(rank - 2) < width / 2 || type.getDimSize(rank - 1) < width / 2)
    return failure();
  tokens = type.getDimSize(rank - 2);
  int64_t inBlock = tokenBlock(), size = inBlock ? inBlock : width;
  auto loopOver = [&](int64_t extent, unsigned &dim) {
    AffineExpr variable = space.addDim(extent);
    dim = cast<AffineDimExpr>(variable).getPosition();
    return variable;
  };
  for (int64_t extent : type.getShape().drop_back(2)) {
    if (extent == 1) {
      index.push_back(space.constant(0));
      continue;
    }
    index.push_back(loopOver(extent, outer.emplace_back()));
  }
  AffineExpr ofBlock = loopOver(llvm::divideCeil(tokens, size), block);
  AffineExpr ofPart = loopOver(size / width, part);
  AffineExpr ofLane = loopOver(width, lane);
  index.push_back(space.simplify(ofBlock * size + ofPart * width + ofLane));
  index.push_back(loopOver(type.getDimSize(rank - 1), feature));
  demand = demandOf(target.tensor, index, space);
  // Without either, the loops of a nest transpose as well.
  bool isOwn = inBlock || !demand.reductions.empty();
  return success(isOwn && demand.scans.empty() && readsAlongTokens());
}

bool LanesToRows::readsAlongTokens() const {
  int64_t alongTokens = stridedAccesses(demand.accesses, lane, space);
  int64_t alongFeatures = stridedAccesses(demand.accesses, feature, space);
  for (const ReductionDemand &reduction : demand.reductions) {
    for (AffineExpr expr : reduction.index)
      if (expr.isFunctionOfDim(feature))
        return false;
    alongTokens += stridedAccesses(reduction.accesses, lane, space);
    alongFeatures += reduction.leastStrided(space);
  }
  return alongTokens < alongFeatures;
}

int64_t LanesToRows::flops() const {
  int64_t points = space.count(outer) * tokens;
  return demand.flops(space, points, points * space.extent(feature));
}

void LanesToRows::emit(const PointWork &work) {
  point.setOverride([this](PointEmitter &, Value tensor, ArrayRef<AffineExpr> at) {
    return reduced.find(tensor, at);
  });
  int64_t ofTokens = llvm::divideCeil(tokens, width), tail = tokens % width;
  int64_t cells = space.count(outer) * ofTokens;
  kernel.forEachPiece(cells, work.leastPieces(cells), work.serial, [&](Value number) {
    Value cell = remainderOf(number, ofTokens);
    number = dividedBy(number, ofTokens);
    for (unsigned dim : llvm::reverse(outer)) {
      point.setDim(dim, remainderOf(number, space.extent(dim)));
      number = dividedBy(number, space.extent(dim));
    }
    point.setDim(block, dividedBy(cell, space.extent(part)));
    point.setDim(part, remainderOf(cell, space.extent(part)));
    if (tail == 0)
      return emitCell(width);
    emitIf(
        builder, loc, is(arith::CmpIPredicate::eq, cell, constant(ofTokens - 1)),
        [&] { emitCell(tail); }, [&] { emitCell(width); });
  });
}

void LanesToRows::emitCell(int64_t valid) {
  reduced.clear();
  point.forget();
  Value firstLane = constant(0);
  point.setDim(lane, firstLane);
  point.setLanes({static_cast<int64_t>(lane), width, 1, valid});
  for (const ReductionDemand &reduction : demand.reductions)
    reduced.add(reduction, emitReduction(point, reduction, width));
  int64_t features = space.extent(feature), whole = features / width * width;
  emitLoop(builder, loc, 0, whole, width, {}, [&](Value first, ValueRange) {
    emitSquare(first, width, firstLane, valid);
    return SmallVector<Value>();
  });
  if (whole < features)
    emitSquare(constant(whole), features - whole, firstLane, valid);
  point.setLanes(Lanes());
}

/// The values of `columns` features from `first` on, for `valid` tokens of the cell from its
/// `firstLane` on, which is 0.
void LanesToRows::emitSquare(Value first, int64_t columns, Value firstLane, int64_t valid) {
  SmallVector<Value> square;
  for (int64_t i = 0; i < columns; ++i) {
    point.setDim(feature, add(first, i));
    point.forget();
    square.push_back(point.asVectors(point.emitAt(target.tensor, index)).front());
  }
  square.resize(width, square.front());
  square = transposeVectors(builder, loc, square);
  point.setDim(feature, first);
  point.setLanes({static_cast<int64_t>(feature), width, 1, columns});
  for (int64_t i = 0; i < valid; ++i) {
    point.setDim(lane, constant(i));
    point.forget();
    point.store(kernel.rootBuffers[target.root], target.rootIndex(index), {{square[i]}, false});
  }
  point.setDim(lane, firstLane);
  point.setLanes({static_cast<int64_t>(lane), width, 1, valid});
}

LogicalResult weft::emitLanesToRows(KernelFunction &kernel) {
  return emitOneTarget<LanesToRows>(kernel);
}
