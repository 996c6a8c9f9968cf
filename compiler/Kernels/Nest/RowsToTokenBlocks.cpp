// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Row-major rows reduced and stored to token blocks: norms and softmaxes before contractions. The
// rows of one vector of tokens are computed one by one into scratch, and transposed from there in
// registers.
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Emission/RegisterTranspose.h"
#include "compiler/Kernels/Nest/TokenBlockTranspose.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {
class RowsToTokenBlocks : public TokenBlockTranspose {
public:
  using TokenBlockTranspose::TokenBlockTranspose;

  /// Fails unless there are reductions, which all depend on all dims but one.
  LogicalResult match();
  TransposeProblem problem() const override;
  void emit();

private:
  int64_t cellCount() const override { return space.count(cells); }
  bool rowByRow() const override { return true; }
  std::optional<unsigned> findFeature() const;
  void emitCell();
  void emitRow(Value number);
  int64_t rowLength() const { return llvm::alignTo(space.extent(feature), width); }

  SmallVector<unsigned> cells; ///< dims other than `lane` and `feature`
  VectorType type;
  Value rows; ///< scratch, [lane][feature]
};
} // namespace

LogicalResult RowsToTokenBlocks::match() {
  RankedTensorType tensor = tensorType(target.tensor);
  ArrayRef<int64_t> shape = tensor.getShape();
  if (!isRows() || shape.back() % width != 0)
    return failure();
  type = VectorType::get({width}, tensor.getElementType());
  for (int64_t extent : shape.drop_back())
    index.push_back(extent == 1 ? space.constant(0) : space.addDim(extent));
  AffineExpr part = space.addDim(shape.back() / width), inPart = loopOver(width, lane);
  index.push_back(space.simplify(part * width + inPart));
  demand = demandOf(target.tensor, index, space);
  std::optional<unsigned> found = findFeature();
  if (demand.reductions.empty() || !demand.scans.empty() || !found)
    return failure();
  feature = *found;
  for (unsigned dim = 0; dim < lane; ++dim)
    if (dim != feature)
      cells.push_back(dim);
  points = space.count(cells) * width;
  return success();
}

TransposeProblem RowsToTokenBlocks::problem() const {
  int64_t bytes = width * rowLength() * type.getElementTypeBitWidth() / 8;
  return {space,
          demand.reductions,
          cellCount(),
          /*rowByRow=*/true,
          space.extent(feature),
          stridedAlongFeatures(),
          stridedAlongTokens(),
          bytes,
          /*isOwn=*/true};
}

/// The dim that no reduction depends on, if there is exactly one.
std::optional<unsigned> RowsToTokenBlocks::findFeature() const {
  std::optional<unsigned> found;
  for (unsigned dim = 0; dim < lane; ++dim) {
    if (demand.reducesFor(dim) || space.extent(dim) == 1)
      continue;
    if (found)
      return std::nullopt;
    found = dim;
  }
  return found;
}

void RowsToTokenBlocks::emit() {
  rows = kernel.scratch(type.getElementType(), width * rowLength());
  kernel.forEachPiece(cellCount(), schedule.claim, [&](Value number) {
    setFlat(point, cells, number);
    emitIfCounting(cells, [&] { emitCell(); });
  });
}

void RowsToTokenBlocks::emitCell() {
  emitLoop(builder, loc, 0, width, 1, {}, [&](Value row, ValueRange) {
    emitRow(row);
    return SmallVector<Value>();
  });
  Value firstRow = constant(0);
  forEachVector([&](Value first, int64_t features) {
    point.setDim(feature, first);
    emitSquare(
        point, feature, lane, firstRow, /*columns=*/width, /*rows=*/features, width,
        [&] {
          Value place = add(times(point.dimValue(lane), rowLength()), point.dimValue(feature));
          return vector::LoadOp::create(builder, loc, type, rows, place);
        },
        [&](const Emitted &ofTokens) { store(ofTokens); });
  });
}

void RowsToTokenBlocks::emitRow(Value number) {
  point.setDim(lane, number);
  point.setLanes(Lanes());
  emitReductions();
  Value start = times(number, rowLength());
  emitLaneLoop(point, feature, constant(0), space.extent(feature), {width, schedule.groups}, {},
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

std::optional<TransposeProblem> weft::matchRowsToTokenBlocks(KernelFunction &kernel,
                                                             bool interior) {
  return matchTransposed<RowsToTokenBlocks>(kernel, interior);
}

LogicalResult weft::emitRowsToTokenBlocks(KernelFunction &kernel) {
  return emitTransposed<RowsToTokenBlocks>(kernel);
}
