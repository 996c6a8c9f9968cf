// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers, type inference, loops and layouts of constants and of the ops that only move elements.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/IterationBuilder.h"
#include "compiler/Graph/OpCost.h"
#include "compiler/Graph/ViewLayouts.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

LogicalResult IotaOp::verify() {
  RankedTensorType type = getType();
  auto error = [&] { return emitOpError(); };
  if (failed(checkDim("dim", getDim(), type.getRank(), error)))
    return failure();
  if (type.getElementType().isInteger(1))
    return emitOpError() << "expected elements that count, found " << type.getElementType();
  return success();
}

LogicalResult BroadcastInDimOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  auto error = [&] { return emitOpError(); };
  if (static_cast<int64_t>(getDims().size()) != from.getRank())
    return emitOpError() << "expected one entry of dims per operand dim (" << from.getRank()
                         << "), found " << getDims().size();
  if (failed(checkDims("dims", getDims(), to.getRank(), error)))
    return failure();
  for (auto [dim, size, place] : llvm::enumerate(from.getShape(), getDims()))
    if (size != 1 && size != to.getDimSize(place))
      return emitOpError() << "expected operand dim " << dim << " (" << size
                           << ") to be 1 or equal result dim " << place << " ("
                           << to.getDimSize(place) << ")";
  return checkSameElement("operand", getOperand(), "result", getResult(), error);
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  if (from.getNumElements() != to.getNumElements())
    return emitOpError() << "expected a result of " << from.getNumElements() << " elements, found "
                         << to.getNumElements();
  return checkSameElement("operand", getOperand(), "result", getResult(),
                          [&] { return emitOpError(); });
}

LogicalResult TransposeOp::check(Adaptor op, ErrorFn error) {
  int64_t rank = tensorType(op.getOperand()).getRank();
  if (static_cast<int64_t>(op.getPerm().size()) != rank)
    return error() << "expected perm to have " << rank << " entries, found " << op.getPerm().size();
  return checkDims("perm", op.getPerm(), rank, error);
}

SmallVector<Type> TransposeOp::infer(Adaptor op) {
  RankedTensorType type = tensorType(op.getOperand());
  SmallVector<int64_t> shape;
  for (int64_t dim : op.getPerm())
    shape.push_back(type.getDimSize(dim));
  return {RankedTensorType::get(shape, type.getElementType())};
}

LogicalResult SliceOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType type = tensorType(op.getOperand());
  int64_t rank = type.getRank();
  if (failed(checkEntries("start", op.getStart(), rank, 0, error)) ||
      failed(checkEntries("limit", op.getLimit(), rank, 0, error)) ||
      failed(checkEntries("stride", op.getStride(), rank, 1, error)))
    return failure();
  for (auto [dim, start, limit, size] :
       llvm::enumerate(op.getStart(), op.getLimit(), type.getShape()))
    if (start > limit || limit > size)
      return error() << "expected start (" << start << ") to be at most limit (" << limit
                     << "), and limit at most the size (" << size << ") of dim " << dim;
  return success();
}

SmallVector<Type> SliceOp::infer(Adaptor op) {
  SmallVector<int64_t> shape;
  for (auto [start, limit, stride] : llvm::zip(op.getStart(), op.getLimit(), op.getStride()))
    shape.push_back(llvm::divideCeil(limit - start, stride));
  return {RankedTensorType::get(shape, tensorType(op.getOperand()).getElementType())};
}

LogicalResult AdvanceOp::verify() {
  int64_t elements = physicalType(getOperand().getType()).getNumElements(), offset = getOffset();
  if (offset < 0 || offset > elements)
    return emitOpError() << "expected an offset from 0 to " << elements << ", found " << offset;
  return success();
}

LogicalResult PadOp::check(Adaptor op, ErrorFn error) {
  int64_t rank = tensorType(op.getOperand()).getRank();
  if (failed(checkShape("value", op.getValue(), {}, error)) ||
      failed(checkSameElement("operand", op.getOperand(), "value", op.getValue(), error)) ||
      failed(checkEntries("low", op.getLow(), rank, 0, error)))
    return failure();
  return checkEntries("high", op.getHigh(), rank, 0, error);
}

SmallVector<Type> PadOp::infer(Adaptor op) {
  RankedTensorType type = tensorType(op.getOperand());
  SmallVector<int64_t> shape;
  for (auto [size, low, high] : llvm::zip(type.getShape(), op.getLow(), op.getHigh()))
    shape.push_back(low + size + high);
  return {RankedTensorType::get(shape, type.getElementType())};
}

LogicalResult ConcatOp::check(Adaptor op, ErrorFn error) {
  if (op.getOperands().empty())
    return error() << "expected at least one operand, found none";
  RankedTensorType first = tensorType(op.getOperands().front());
  int64_t dim = op.getDim();
  if (failed(checkDim("dim", dim, first.getRank(), error)))
    return failure();
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    std::string name = "operand " + std::to_string(index);
    SmallVector<int64_t> shape(first.getShape());
    if (tensorType(operand).getRank() == first.getRank())
      shape[dim] = tensorType(operand).getDimSize(dim);
    if (failed(checkSameElement("operand 0", op.getOperands().front(), name, operand, error)) ||
        failed(checkShape(name, operand, shape, error)))
      return failure();
  }
  return success();
}

SmallVector<Type> ConcatOp::infer(Adaptor op) {
  RankedTensorType first = tensorType(op.getOperands().front());
  SmallVector<int64_t> shape(first.getShape());
  shape[op.getDim()] = 0;
  for (Value operand : op.getOperands())
    shape[op.getDim()] += tensorType(operand).getDimSize(op.getDim());
  return {RankedTensorType::get(shape, first.getElementType())};
}

LogicalResult ReverseOp::verify() {
  return checkDims("dims", getDims(), getType().getRank(), [&] { return emitOpError(); });
}

LogicalResult RelayoutOp::verify() {
  if (equalUpToLayout(getOperand().getType(), getType()))
    return success();
  return emitOpError() << "expected operand and result to differ in nothing but layout, found "
                       << getOperand().getType() << " and " << getType();
}

//===----------------------------------------------------------------------===//
// Loops and layouts
//===----------------------------------------------------------------------===//

/// Values without operands, and relayouts: one loop for each dim of the result.
template <typename OpTy> static void elementwiseLoops(OpTy, IterationBuilder &builder) {
  builder.elementwise();
}

static void broadcastInDimLoops(BroadcastInDimOp op, IterationBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult();
  for (auto [dim, place] : llvm::enumerate(op.getDims()))
    if (tensorType(op.getOperand()).getDimSize(dim) != 1)
      builder.operand(0)[dim] = result[place];
}

/// Loops over the common factors of both shapes, innermost first.
static void reshapeLoops(ReshapeOp op, IterationBuilder &builder) {
  ArrayRef<int64_t> from = tensorType(op.getOperand()).getShape(),
                    to = tensorType(op.getResult()).getShape();
  TensorAccess operand(from.size()), result(to.size());
  size_t i = from.size(), j = to.size();
  int64_t left = 1, right = 1;
  while (true) {
    while (left == 1 && i > 0)
      left = from[--i];
    while (right == 1 && j > 0)
      right = to[--j];
    if (left == 1 && right == 1)
      break;
    int64_t size = std::min(left, right);
    if (size <= 1 || left % size || right % size) {
      builder.loopsOfResult();
      for (DimAccess &dim : builder.operand(0))
        dim.kind = DimAccessKind::Computed;
      return;
    }
    unsigned loop = builder.loop(size).loops.front();
    operand[i].loops.insert(operand[i].loops.begin(), loop);
    result[j].loops.insert(result[j].loops.begin(), loop);
    left /= size;
    right /= size;
  }
  builder.operand(0) = operand;
  builder.result() = result;
}

static void transposeLoops(TransposeOp op, IterationBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult();
  for (auto [dim, source] : llvm::enumerate(op.getPerm()))
    builder.operand(0)[source] = result[dim];
}

/// Dims of unchanged size are whole; along the others only a part is read or written.
static void partialLoops(Operation *op, unsigned number, IterationBuilder &builder) {
  ArrayRef<int64_t> from = tensorType(op->getOperand(number)).getShape(),
                    to = tensorType(op->getResult(0)).getShape();
  for (size_t dim = 0; dim < to.size(); ++dim) {
    const DimAccess &result = builder.result()[dim];
    builder.operand(number)[dim] = from[dim] == to[dim] ? result : shifted(result);
  }
}

static void sliceLoops(SliceOp op, IterationBuilder &builder) {
  builder.loopsOfResult();
  partialLoops(op, 0, builder);
  for (auto [dim, stride] : llvm::enumerate(op.getStride()))
    builder.operand(0)[dim].skips = stride != 1;
}

static void padLoops(PadOp op, IterationBuilder &builder) {
  builder.loopsOfResult();
  partialLoops(op, 0, builder);
}

static void concatLoops(ConcatOp op, IterationBuilder &builder) {
  builder.loopsOfResult();
  for (unsigned number = 0; number < op->getNumOperands(); ++number)
    partialLoops(op, number, builder);
}

static void reverseLoops(ReverseOp op, IterationBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult();
  builder.operand(0) = result;
  for (int64_t dim : op.getDims())
    builder.operand(0)[dim] = shifted(result[dim], /*skips=*/true);
}

static FailureOr<LayoutAttr> broadcastKept(BroadcastInDimOp op) {
  return broadcastLayout(op.getOperand().getType(), op.getType().getShape(), op.getDims());
}

static FailureOr<LayoutAttr> transposeKept(TransposeOp op) {
  return transposedLayout(layoutOf(op.getOperand().getType()), op.getPerm());
}

/// The tiled dim has to be whole.
static FailureOr<LayoutAttr> sliceKept(SliceOp op) {
  RankedTensorType from = op.getOperand().getType(), to = op.getType();
  return unlessTiledAlong(from,
                          [&](int64_t dim) { return from.getDimSize(dim) != to.getDimSize(dim); });
}

static FailureOr<LayoutAttr> padKept(PadOp op) { return unlessTiled(op.getOperand().getType()); }

/// Dims that are merged have to lie in order; the innermost one stays innermost where it can, so
/// that vectors still run along it.
static FailureOr<LayoutAttr> reshapeKept(ReshapeOp op) {
  return reshapedLayout(op.getOperand().getType(), op.getType().getShape());
}

static LayoutAttr reshapeNearest(ReshapeOp op) {
  LayoutAttr layout = layoutOf(op.getOperand().getType());
  if (succeeded(reshapeKept(op)) || isTiled(layout))
    return layout;
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(layout.getOrder().size()));
  order.erase(order.begin() + layout.getOrder().back());
  order.push_back(layout.getOrder().back());
  LayoutAttr inOrder = normalized(LayoutAttr::get(op.getContext(), order, -1, 0));
  RankedTensorType moved = withLayout(op.getOperand().getType(), inOrder);
  return succeeded(reshapedLayout(moved, op.getType().getShape())) ? inOrder : layout;
}

/// Operands end anywhere within a tile.
static bool concatShares(ConcatOp op, LayoutAttr layout) {
  return !isTiled(layout) || layout.getTileDim() != static_cast<int64_t>(op.getDim());
}

static std::optional<InnermostDim> transposeView(TransposeOp op, InnermostDim at) {
  at.dim = llvm::find(op.getPerm(), at.dim) - op.getPerm().begin();
  return at;
}

/// To the dim whose row-major stride divides the step between elements.
static std::optional<InnermostDim> reshapeView(ReshapeOp op, InnermostDim at) {
  ArrayRef<int64_t> from = op.getOperand().getType().getShape(), to = op.getType().getShape();
  if (llvm::is_contained(from, 0)) // no elements, no steps between them
    return std::nullopt;
  int64_t distance = at.step;
  for (int64_t size : from.drop_front(at.dim + 1))
    distance *= size;
  int64_t stride = 1;
  for (int64_t dim = to.size() - 1; dim >= 0; --dim) {
    if (distance % stride == 0 && distance < stride * to[dim])
      return InnermostDim{dim, distance / stride};
    stride *= to[dim];
  }
  return std::nullopt;
}

static std::optional<InnermostDim> sliceView(SliceOp op, InnermostDim at) {
  return op.getStride()[at.dim] == 1 ? std::optional(at) : std::nullopt;
}

static std::optional<InnermostDim> relayoutView(RelayoutOp, InnermostDim at) { return at; }

static SmallVector<DimWindows> padWindows(PadOp op) {
  SmallVector<DimWindows> windows;
  for (auto [dim, low] : llvm::enumerate(op.getLow()))
    if (low || op.getHigh()[dim])
      windows.push_back({int64_t(dim), low + op.getHigh()[dim] - 1, 1});
  return windows;
}

static void stackBroadcast(BroadcastInDimOp copy) {
  copy.setDims(stackedWith(0, stackedDims(copy.getDims())));
}

static void stackSlice(SliceOp copy) {
  copy.setStart(stackedWith(0, copy.getStart()));
  copy.setLimit(stackedWith(copy.getOperand().getType().getDimSize(0), copy.getLimit()));
  copy.setStride(stackedWith(1, copy.getStride()));
}

static void stackTranspose(TransposeOp copy) {
  copy.setPerm(stackedWith(0, stackedDims(copy.getPerm())));
}

void weft::structureShape(MLIRContext *context) {
  iterate<ConstantOp, elementwiseLoops<ConstantOp>>(context);
  iterate<IotaOp, elementwiseLoops<IotaOp>>(context);
  iterate<RelayoutOp, elementwiseLoops<RelayoutOp>>(context);
  iterate<BroadcastInDimOp, broadcastInDimLoops>(context);
  iterate<ReshapeOp, reshapeLoops>(context);
  iterate<TransposeOp, transposeLoops>(context);
  iterate<SliceOp, sliceLoops>(context);
  iterate<PadOp, padLoops>(context);
  iterate<ConcatOp, concatLoops>(context);
  iterate<ReverseOp, reverseLoops>(context);
  keepLayout<BroadcastInDimOp, broadcastKept>(context);
  keepLayout<TransposeOp, transposeKept>(context);
  keepImages<SliceOp, sliceKept>(context);
  keepImages<PadOp, padKept>(context);
  keepLayout<ReshapeOp, reshapeKept, reshapeNearest>(context);
  shareLayout<ConcatOp, concatShares>(context);
  view<RelayoutOp, relayoutView>(context);
  view<ReshapeOp, reshapeView>(context);
  view<SliceOp, sliceView>(context);
  view<TransposeOp, transposeView>(context);
  slide<PadOp, padWindows>(context);
  stack<BroadcastInDimOp, stackBroadcast>(context);
  stack<ReshapeOp>(context);
  stack<SliceOp, stackSlice>(context);
  stack<TransposeOp, stackTranspose>(context);
  takes<OpWork{OpWork::Kind::Nothing}, ReshapeOp, RelayoutOp, BroadcastInDimOp>(context);
  takes<OpWork{OpWork::Kind::Reading}, SliceOp, TransposeOp>(context);
  place<Placement{.repeated = true}, RelayoutOp>(context);
  place<Placement{.repeated = true, .anyLayout = true}, ConstantOp, IotaOp>(context);
  place<Placement{.repeated = true, .moved = true}, ConcatOp, PadOp>(context);
  place<Placement{.repeated = true, .moved = true, .anyLayout = true}, BroadcastInDimOp>(context);
  place<Placement{.repeated = true, .moved = true, .view = true}, ReshapeOp, SliceOp, TransposeOp>(
      context);
}
