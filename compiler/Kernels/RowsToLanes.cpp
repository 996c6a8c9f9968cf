// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows that are read feature by feature and stored token by token: norms and softmaxes that lead
// into blocks of tokens. The rows of as many tokens as a vector has lanes are computed one after
// the other into scratch, from where they go through registers a square at a time.
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Emitters.h"
#include "compiler/Kernels/IndexArithmetic.h"
#include "compiler/Kernels/OneTarget.h"
#include "compiler/Kernels/Reductions.h"
#include "compiler/Kernels/Transposition.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {
class RowsToLanes : private IndexArithmetic {
public:
  RowsToLanes(KernelFunction &kernel, const StoreTarget &target)
      : IndexArithmetic(kernel.builder, kernel.loc), kernel(kernel), target(target),
        space(kernel.emitted.getContext()), point(kernel.pointEmitter(space)) {}

  /// Fails unless rows are reduced that are read as vectors along the features.
  LogicalResult match();
  void emit(const PointWork &work);
  int64_t flops() const;

private:
  std::optional<unsigned> findFeature() const;
  bool readsAlongFeatures() const;
  void emitRow(Value number);
  void emitSquare(Value first, int64_t columns);
  int64_t rowLength() const { return llvm::alignTo(space.extent(feature), width); }

  KernelFunction &kernel;
  const StoreTarget &target;
  IndexSpace space;
  PointEmitter point;
  Demand demand;
  ReducedValues reduced;
  Index index;
  SmallVector<unsigned> cells; ///< dims but `lane` and `feature`
  unsigned lane = 0, feature = 0;
  int64_t width = 1;
  VectorType type;
  Value rows; ///< scratch, [lane][feature]
};
} // namespace

LogicalResult RowsToLanes::match() {
  RankedTensorType tensor = tensorType(target.tensor);
  ArrayRef<int64_t> shape = tensor.getShape();
  width = kernel.target.lanes(32);
  if (shape.size() < 2 || tensor.getNumElements() == 0 || !tensor.getElementType().isF32() ||
      shape.back() % width != 0)
    return failure();
  type = VectorType::get({width}, tensor.getElementType());
  for (int64_t extent : shape.drop_back())
    index.push_back(extent == 1 ? space.constant(0) : space.addDim(extent));
  AffineExpr part = space.addDim(shape.back() / width), inPart = space.addDim(width);
  lane = cast<AffineDimExpr>(inPart).getPosition();
  index.push_back(space.simplify(part * width + inPart));
  demand = demandOf(target.tensor, index, space);
  std::optional<unsigned> found = findFeature();
  if (demand.reductions.empty() || !demand.scans.empty() || !found)
    return failure();
  feature = *found;
  for (unsigned dim = 0; dim < lane; ++dim)
    if (dim != feature)
      cells.push_back(dim);
  // Scratch stays in the second-level cache.
  int64_t bytes = width * rowLength() * tensor.getElementTypeBitWidth() / 8;
  return success(readsAlongFeatures() && bytes <= kernel.target.l2Bytes / 2);
}

/// The dim that no reduction depends on, if that is one alone.
std::optional<unsigned> RowsToLanes::findFeature() const {
  std::optional<unsigned> found;
  for (unsigned dim = 0; dim < lane; ++dim) {
    bool isReducedFor = llvm::any_of(demand.reductions, [&](const ReductionDemand &reduction) {
      return llvm::any_of(reduction.index,
                          [&](AffineExpr expr) { return expr.isFunctionOfDim(dim); });
    });
    if (isReducedFor || space.extent(dim) == 1)
      continue;
    if (found)
      return std::nullopt;
    found = dim;
  }
  return found && space.extent(*found) >= width / 2 ? found : std::nullopt;
}

bool RowsToLanes::readsAlongFeatures() const {
  int64_t alongTokens = stridedAccesses(demand.accesses, lane, space);
  int64_t alongFeatures = stridedAccesses(demand.accesses, feature, space);
  for (const ReductionDemand &reduction : demand.reductions) {
    alongTokens += stridedAccesses(reduction.accesses, lane, space);
    alongFeatures += reduction.leastStrided(space);
  }
  return alongFeatures < alongTokens;
}

int64_t RowsToLanes::flops() const {
  int64_t points = space.count(cells) * width;
  return demand.flops(space, points, points * space.extent(feature));
}

void RowsToLanes::emit(const PointWork &work) {
  rows = kernel.scratch(type.getElementType(), width * rowLength());
  point.setOverride([this](PointEmitter &, Value tensor, ArrayRef<AffineExpr> at) {
    return reduced.find(tensor, at);
  });
  int64_t count = space.count(cells), features = space.extent(feature);
  kernel.forEachPiece(count, work.leastPieces(count), work.serial, [&](Value number) {
    for (unsigned dim : llvm::reverse(cells)) {
      point.setDim(dim, remainderOf(number, space.extent(dim)));
      number = dividedBy(number, space.extent(dim));
    }
    emitLoop(builder, loc, 0, width, 1, {}, [&](Value row, ValueRange) {
      emitRow(row);
      return SmallVector<Value>();
    });
    int64_t whole = features / width * width;
    emitLoop(builder, loc, 0, whole, width, {}, [&](Value first, ValueRange) {
      emitSquare(first, width);
      return SmallVector<Value>();
    });
    if (whole < features)
      emitSquare(constant(whole), features - whole);
  });
}

void RowsToLanes::emitRow(Value number) {
  reduced.clear();
  point.forget();
  point.setDim(lane, number);
  point.setLanes(Lanes());
  for (const ReductionDemand &reduction : demand.reductions)
    reduced.add(reduction, emitReduction(point, reduction, width));
  Value start = times(number, rowLength());
  emitLaneLoop(point, feature, constant(0), space.extent(feature), width, {},
               [&](Value first, ValueRange) {
                 point.forget();
                 Emitted value = point.emitAt(target.tensor, index);
                 for (auto [group, vector] : llvm::enumerate(point.asVectors(value))) {
                   Value place = add(add(start, first), int64_t(group) * width);
                   vector::StoreOp::create(builder, loc, vector, rows, place);
                 }
                 return SmallVector<Value>();
               });
  point.setLanes(Lanes());
}

/// `columns` features from `first` on, of all rows.
void RowsToLanes::emitSquare(Value first, int64_t columns) {
  SmallVector<Value> square;
  for (int64_t i = 0; i < width; ++i)
    square.push_back(vector::LoadOp::create(builder, loc, type, rows, add(first, i * rowLength())));
  square = transposeVectors(builder, loc, square);
  point.setDim(lane, constant(0));
  point.setLanes({static_cast<int64_t>(lane), width, 1, width});
  for (int64_t i = 0; i < columns; ++i) {
    point.setDim(feature, add(first, i));
    point.forget();
    point.store(kernel.rootBuffers[target.root], target.rootIndex(index), {{square[i]}, false});
  }
  point.setLanes(Lanes());
}

LogicalResult weft::emitRowsToLanes(KernelFunction &kernel) {
  return emitOneTarget<RowsToLanes>(kernel);
}
