// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers, type inference, loops and layouts of the ops that combine elements along dims.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/IterationBuilder.h"
#include "compiler/Graph/OpCost.h"
#include "compiler/Graph/ViewLayouts.h"

using namespace mlir;
using namespace weft;

static Type withoutDims(RankedTensorType type, ArrayRef<int64_t> dims, Type element) {
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
      shape.push_back(size);
  return RankedTensorType::get(shape, element);
}

LogicalResult ReduceOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType type = tensorType(op.getOperand());
  if (failed(checkDims("dims", op.getDims(), type.getRank(), error)))
    return failure();
  return checkReduceKind(op.getKind(), type.getElementType(), error);
}

SmallVector<Type> ReduceOp::infer(Adaptor op) {
  RankedTensorType type = tensorType(op.getOperand());
  return {withoutDims(type, op.getDims(), type.getElementType())};
}

LogicalResult ArgReduceOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType type = tensorType(op.getOperand());
  if (failed(checkDim("dim", op.getDim(), type.getRank(), error)))
    return failure();
  if (op.getKind() != ReduceKind::max && op.getKind() != ReduceKind::min)
    return error() << "expected kind max or min, found " << stringifyReduceKind(op.getKind());
  if (type.getDimSize(op.getDim()) == 0)
    return error() << "expected dim " << op.getDim() << " to hold an element, found size 0";
  return success();
}

SmallVector<Type> ArgReduceOp::infer(Adaptor op) {
  RankedTensorType type = tensorType(op.getOperand());
  return {withoutDims(type, op.getDim(), IntegerType::get(type.getContext(), 64))};
}

LogicalResult CumulativeOp::verify() {
  auto error = [&] { return emitOpError(); };
  if (failed(checkDim("dim", getDim(), getType().getRank(), error)))
    return failure();
  return checkReduceKind(getKind(), getType().getElementType(), error);
}

LogicalResult ReduceWindowOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType type = tensorType(op.getOperand());
  int64_t rank = type.getRank();
  if (failed(checkReduceKind(op.getKind(), type.getElementType(), error)) ||
      failed(checkEntries("window", op.getWindow(), rank, 1, error)) ||
      failed(checkEntries("strides", op.getStrides(), rank, 1, error)) ||
      failed(checkEntries("dilations", op.getDilations(), rank, 1, error)))
    return failure();
  for (auto [dim, size, window, dilation] :
       llvm::enumerate(type.getShape(), op.getWindow(), op.getDilations()))
    if (int64_t extent = (window - 1) * dilation + 1; extent > size)
      return error() << "expected a window of extent " << extent << " to fit dim " << dim
                     << ", found size " << size;
  return success();
}

SmallVector<Type> ReduceWindowOp::infer(Adaptor op) {
  RankedTensorType type = tensorType(op.getOperand());
  SmallVector<int64_t> shape;
  for (auto [size, window, stride, dilation] :
       llvm::zip(type.getShape(), op.getWindow(), op.getStrides(), op.getDilations()))
    shape.push_back((size - (window - 1) * dilation - 1) / stride + 1);
  return {RankedTensorType::get(shape, type.getElementType())};
}

//===----------------------------------------------------------------------===//
// Loops and layouts
//===----------------------------------------------------------------------===//

/// The reduced dims are reductions; the others keep their order.
static void reduceLoops(ReduceOp op, IterationBuilder &builder) {
  size_t next = 0;
  for (auto [dim, size] : llvm::enumerate(tensorType(op.getOperand()).getShape())) {
    bool reduced = llvm::is_contained(op.getDims(), int64_t(dim));
    builder.operand(0)[dim] =
        builder.loop(size, reduced ? LoopKind::Reduction : LoopKind::Parallel);
    if (!reduced)
      builder.result()[next++] = builder.operand(0)[dim];
  }
}

static void cumulativeLoops(CumulativeOp op, IterationBuilder &builder) {
  for (auto [dim, size] : llvm::enumerate(tensorType(op.getOperand()).getShape()))
    builder.result()[dim] = builder.loop(
        size, int64_t(dim) == int64_t(op.getDim()) ? LoopKind::Scan : LoopKind::Parallel);
  builder.operand(0) = builder.result();
}

static void reduceWindowLoops(ReduceWindowOp op, IterationBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult();
  for (auto [dim, size] : llvm::enumerate(op.getWindow()))
    builder.operand(0)[dim] = window(result[dim], builder.loop(size, LoopKind::Reduction));
}

static FailureOr<LayoutAttr> reduceKept(ReduceOp op) {
  return reducedLayout(layoutOf(op.getOperand().getType()), op.getDims());
}

static FailureOr<LayoutAttr> reduceWindowKept(ReduceWindowOp op) {
  return unlessTiled(op.getOperand().getType());
}

static SmallVector<DimWindows> reduceWindowWindows(ReduceWindowOp op) {
  SmallVector<DimWindows> windows;
  for (auto [dim, step] : llvm::enumerate(op.getStrides()))
    if (step != 1 || op.getWindow()[dim] != 1)
      windows.push_back(
          {int64_t(dim), -(op.getWindow()[dim] - 1) * op.getDilations()[dim] - 1, step});
  return windows;
}

static void stackReduce(ReduceOp copy) { copy.setDims(stackedDims(copy.getDims())); }

void weft::structureReduce(MLIRContext *context) {
  iterate<ReduceOp, reduceLoops>(context);
  iterate<CumulativeOp, cumulativeLoops>(context);
  iterate<ReduceWindowOp, reduceWindowLoops>(context);
  keepLayout<ReduceOp, reduceKept>(context);
  keepImages<ReduceWindowOp, reduceWindowKept>(context);
  slide<ReduceWindowOp, reduceWindowWindows>(context);
  stack<ReduceOp, stackReduce>(context);
  place<Placement{.stored = true}, ReduceOp, CumulativeOp>(context);
}
