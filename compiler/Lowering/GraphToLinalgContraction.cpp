// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Chooses the iteration space of a contraction from the layouts of its operands.
#include "compiler/Lowering/GraphToLinalgContraction.h"
#include "compiler/Kernels/Kernels.h"
#include "compiler/Lowering/GraphToLinalg.h"
#include "compiler/Lowering/ScalarMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

/// The index along the operand's tiled dim, or -1.
static int64_t tiledIndex(const LinalgContraction::Operand &operand) {
  int64_t dim = operand.tensor.layout.tileDim;
  return dim < 0 ? -1 : operand.dims[dim].index;
}

static bool uses(const LinalgContraction::Operand &operand, int64_t index) {
  return llvm::any_of(operand.dims, [&](const LinalgContraction::OperandDim &dim) {
    return dim.index == index || dim.window == index;
  });
}

void LinalgContraction::chooseTiles(const Operand &lhs, const Operand &rhs) {
  int64_t rank = resultShape.size();
  int64_t left = tiledIndex(lhs), right = tiledIndex(rhs);
  if (!computed.hasTile() && left >= 0 && left < rank)
    computed = computed.withTile(left, lhs.tensor.layout.tileSize);
  // An operand has at most one tile: if rhs has the result's tiled index, it takes that tile.
  bool rhsFollowsTile = computed.hasTile() && uses(rhs, computed.tileDim);
  if (right >= 0 && right < rank && !rhsFollowsTile && !uses(lhs, right)) {
    packedDim = right;
    packSize = rhs.tensor.layout.tileSize;
  }
}

/// The operand in the iteration's tile, or untiled. Reductions are never tiled, as padding would be
/// summed.
StoredTensor LinalgContraction::fitted(OpBuilder &builder, Location loc,
                                       const Operand &operand) const {
  const Layout &layout = operand.tensor.layout;
  if (packedDim >= 0 && tiledIndex(operand) == packedDim && layout.tileSize == packSize)
    return operand.tensor;
  Layout wanted = layout.withoutTile();
  for (auto [dim, index] : llvm::enumerate(operand.dims))
    if (computed.hasTile() && index.index == computed.tileDim)
      wanted = wanted.withTile(dim, computed.tileSize);
  return {relayout(builder, loc, operand.tensor, wanted), operand.tensor.shape, wanted};
}

void LinalgContraction::layOutIteration() {
  SmallVector<int64_t> sizes = computed.physicalShape(resultShape);
  for (auto [dim, size] : llvm::zip_equal(computed.dims(), sizes)) {
    if (dim.dim != packedDim) {
      axes.push_back(dim);
      physicalShape.push_back(size);
      continue;
    }
    axes.push_back({packedDim, PhysicalDim::Block});
    axes.push_back({packedDim, PhysicalDim::Lane});
    physicalShape.push_back(llvm::divideCeil(size, packSize));
    physicalShape.push_back(packSize);
  }
  for (size_t i = 0; i < reductions.size(); ++i)
    axes.push_back({int64_t(resultShape.size() + i), PhysicalDim::Whole});
}

AffineExpr LinalgContraction::axis(Builder &builder, PhysicalDim dim) const {
  return builder.getAffineDimExpr(llvm::find(axes, dim) - axes.begin());
}

AffineMap LinalgContraction::readMap(Builder &builder, const Operand &operand) const {
  SmallVector<AffineExpr> reads;
  for (PhysicalDim dim : operand.tensor.layout.dims()) {
    const OperandDim &along = operand.dims[dim.dim];
    AffineExpr read = axis(builder, {along.index, dim.part}) * along.dilation;
    if (along.window >= 0)
      read = axis(builder, {along.window, PhysicalDim::Whole}) * along.stride + read;
    reads.push_back(read);
  }
  return AffineMap::get(axes.size(), 0, reads, builder.getContext());
}

/// Marks the padding of the vectorized dim, so that kernels need not compute it.
void LinalgContraction::markPadding(Builder &builder, Operation *generic) const {
  int64_t dim = packedDim >= 0 ? packedDim : computed.tileDim;
  int64_t lanes = packedDim >= 0 ? packSize : computed.tileSize;
  if (dim < 0 || resultShape[dim] % lanes == 0)
    return;
  auto loop = [&](PhysicalDim::Part part) -> int64_t {
    return llvm::find(axes, PhysicalDim{dim, part}) - axes.begin();
  };
  generic->setAttr(attr::padded,
                   builder.getDenseI64ArrayAttr(
                       {loop(PhysicalDim::Block), loop(PhysicalDim::Lane), resultShape[dim]}));
}

/// Joins dim `position` (blocks) and the next one (lanes) of `value` to one dim of `size`.
static Value joinedTile(OpBuilder &builder, Location loc, Value value, int64_t position,
                        int64_t size) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
  shape[position] *= shape[position + 1];
  shape.erase(shape.begin() + position + 1);
  return resized(builder, loc, reshaped(builder, loc, value, shape), position, size);
}

Value LinalgContraction::emit(OpBuilder &builder, Location loc, Operand lhs, Operand rhs,
                              Type element, const Layout &layout) {
  computed = layout;
  chooseTiles(lhs, rhs);
  lhs.tensor = fitted(builder, loc, lhs);
  rhs.tensor = fitted(builder, loc, rhs);
  layOutIteration();

  int64_t rank = physicalShape.size();
  AffineMap resultMap = leadingDims(builder, axes.size(), rank);
  SmallVector<AffineMap> maps{readMap(builder, lhs), readMap(builder, rhs), resultMap};
  Type accumulator = computeType(element);
  auto type = RankedTensorType::get(physicalShape, accumulator);
  Value result = reducingGeneric(
      builder, loc, type, builder.getZeroAttr(accumulator), {lhs.tensor.value, rhs.tensor.value},
      maps, [&](OpBuilder &body, Location loc, ValueRange args) -> Value {
        Value x = decode(body, loc, args[0], element), y = decode(body, loc, args[1], element);
        if (isa<FloatType>(accumulator))
          return arith::AddFOp::create(body, loc, args[2], arith::MulFOp::create(body, loc, x, y));
        return arith::AddIOp::create(body, loc, args[2], arith::MulIOp::create(body, loc, x, y));
      });
  markPadding(builder, result.getDefiningOp());
  result = narrowed(builder, loc, result, storageElementType(element));
  if (packedDim >= 0) {
    int64_t position = llvm::find(axes, PhysicalDim{packedDim, PhysicalDim::Block}) - axes.begin();
    result = joinedTile(builder, loc, result, position, resultShape[packedDim]);
  }
  return relayout(builder, loc, {result, resultShape, computed}, layout);
}
