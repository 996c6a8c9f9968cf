// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/StoreTarget.h"
#include "compiler/Graph/Graph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

Index StoreTarget::rootIndex(ArrayRef<AffineExpr> index) const {
  Index result;
  for (auto [expr, start] : llvm::zip_equal(index, offset))
    result.push_back(start == 0 ? expr : expr + start);
  return result;
}

/// The operands of a concatenation: insert_slices of the root's rank into an empty tensor; none if
/// the root is something else.
static SmallVector<StoreTarget> partsOf(Value root, unsigned number) {
  auto type = cast<RankedTensorType>(root.getType());
  SmallVector<StoreTarget> parts;
  int64_t elements = 0;
  while (auto insert = root.getDefiningOp<tensor::InsertSliceOp>()) {
    if (insert.getDroppedDims().any() || !insert.hasUnitStride())
      return {};
    elements += insert.getSourceType().getNumElements();
    parts.push_back({insert.getSource(), number, llvm::to_vector(insert.getStaticOffsets())});
    root = insert.getDest();
  }
  // The slices cover the root if they have as many elements, as those of a concatenation are
  // disjoint.
  if (!root.getDefiningOp<tensor::EmptyOp>() || elements != type.getNumElements())
    return {};
  return parts;
}

/// Recurses, as an operand may be a concatenation too.
static void addTargets(const StoreTarget &target, SmallVectorImpl<StoreTarget> &targets) {
  SmallVector<StoreTarget> parts = partsOf(target.tensor, target.root);
  for (StoreTarget &part : parts) {
    for (auto [start, offset] : llvm::zip_equal(part.offset, target.offset))
      start += offset;
    addTargets(part, targets);
  }
  if (parts.empty())
    targets.push_back(target);
}

SmallVector<StoreTarget> weft::storeTargets(func::FuncOp kernel, ArrayRef<int64_t> interiors) {
  SmallVector<StoreTarget> targets;
  for (auto [number, root] : llvm::enumerate(rootsOf(kernel))) {
    auto pad = root.getDefiningOp<tensor::PadOp>();
    if (pad && llvm::is_contained(interiors, int64_t(targets.size()))) {
      targets.push_back({pad.getSource(), unsigned(number), llvm::to_vector(pad.getStaticLow())});
      continue;
    }
    SmallVector<int64_t> start(cast<RankedTensorType>(root.getType()).getRank(), 0);
    addTargets({root, unsigned(number), start}, targets);
  }
  return targets;
}

tensor::PadOp weft::paddingOf(const StoreTarget &target, func::FuncOp kernel) {
  bool isRoot = target.tensor == rootsOf(kernel)[target.root];
  return isRoot ? target.tensor.getDefiningOp<tensor::PadOp>() : tensor::PadOp();
}

bool weft::needsInteriors(func::FuncOp kernel) {
  WalkResult found = kernel.walk([](Operation *op) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    bool stays = isa<CumulativeOp>(op) || (generic && isReduction(generic));
    return stays ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

llvm::Error weft::verifyInteriors(func::FuncOp kernel, ArrayRef<int64_t> interiors) {
  SmallVector<StoreTarget> targets = storeTargets(kernel, {});
  bool mayStorePadding = !needsInteriors(kernel);
  for (auto [number, target] : llvm::enumerate(targets))
    if (paddingOf(target, kernel) && !mayStorePadding &&
        !llvm::is_contained(interiors, int64_t(number)))
      return llvm::createStringError(
          "schedule: expected the interior of target " + std::to_string(number) +
          " alone, as reductions and scans are not evaluated at padding");
  for (int64_t number : interiors)
    if (number >= int64_t(targets.size()) || !paddingOf(targets[number], kernel))
      return llvm::createStringError("schedule: expected the interior of padded targets alone, "
                                     "found target " +
                                     std::to_string(number));
  return llvm::Error::success();
}

/// Padding as runs: `length` contiguous elements from `begin` on, repeated over leading dims of
/// `extents` and `strides`.
namespace {
struct Border {
  int64_t begin, length;
  SmallVector<int64_t> extents, strides;
};
} // namespace

/// Borders of the outer dims first, each over the full extent of the inner dims.
static SmallVector<Border> bordersOf(tensor::PadOp pad) {
  ArrayRef<int64_t> shape = pad.getResultType().getShape(), inner = pad.getSourceType().getShape();
  SmallVector<int64_t> strides = computeStrides(shape);
  SmallVector<Border> borders;
  int64_t start = 0; // offset of the unpadded region of the outer dims
  for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim) {
    auto add = [&](int64_t first, int64_t count) {
      if (count > 0)
        borders.push_back({start + first * strides[dim], count * strides[dim],
                           llvm::to_vector(inner.take_front(dim)),
                           llvm::to_vector(ArrayRef(strides).take_front(dim))});
    };
    int64_t low = pad.getStaticLow()[dim], high = pad.getStaticHigh()[dim];
    add(0, low);
    add(low + inner[dim], high);
    start += low * strides[dim];
  }
  return borders;
}

/// Stores `value` to `length` elements from `start` on.
static void emitRun(KernelFunction &kernel, Value memory, Value value, Value start,
                    int64_t length) {
  OpBuilder &builder = kernel.builder;
  Location loc = kernel.loc;
  int64_t width = kernel.target.lanes(std::max(8u, value.getType().getIntOrFloatBitWidth()));
  int64_t whole = length / width * width;
  auto store = [&](Value offset, int64_t lanes) {
    auto type = VectorType::get({lanes}, value.getType());
    Value values = vector::BroadcastOp::create(builder, loc, type, value);
    Value address = arith::AddIOp::create(builder, loc, start, offset);
    vector::StoreOp::create(builder, loc, values, memory, address);
  };
  emitLoop(builder, loc, 0, whole, width, {}, [&](Value offset, ValueRange) {
    store(offset, width);
    return SmallVector<Value>();
  });
  if (whole < length)
    store(arith::ConstantIndexOp::create(builder, loc, whole), length - whole);
}

static void emitBorder(KernelFunction &kernel, Value memory, Value value, const Border &border) {
  OpBuilder &builder = kernel.builder;
  Location loc = kernel.loc;
  auto constant = [&](int64_t number) {
    return arith::ConstantIndexOp::create(builder, loc, number);
  };
  auto [low, high] = kernel.share(computeProduct(border.extents));
  emitLoop(builder, loc, low, high, 1, {}, [&](Value number, ValueRange) {
    Value start = constant(border.begin);
    for (auto [extent, stride] : llvm::reverse(llvm::zip_equal(border.extents, border.strides))) {
      Value at = arith::RemUIOp::create(builder, loc, number, constant(extent));
      number = arith::DivUIOp::create(builder, loc, number, constant(extent));
      at = arith::MulIOp::create(builder, loc, at, constant(stride));
      start = arith::AddIOp::create(builder, loc, start, at);
    }
    emitRun(kernel, memory, value, start, border.length);
    return SmallVector<Value>();
  });
}

void weft::emitBorders(KernelFunction &kernel, llvm::function_ref<bool(unsigned)> stores) {
  for (auto [number, root] : llvm::enumerate(kernel.roots)) {
    auto pad = root.getDefiningOp<tensor::PadOp>();
    if (!pad || !stores(number) || pad.getResultType().getNumElements() == 0)
      continue;
    Operation *constant = pad.getConstantPaddingValue().getDefiningOp();
    Value value = kernel.builder.clone(*constant)->getResult(0);
    for (const Border &border : bordersOf(pad))
      emitBorder(kernel, kernel.rootBuffers[number].flat, value, border);
  }
}
