// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scatter: each thread owns a range of one axis of the destination, copies it, and then applies, in
// order, those of all updates that fall into it. No element has two writers, so the result does not
// depend on the number of threads. A loop axis is partitioned by loop bounds, an indexed one by a
// comparison that doubles as the bounds check.
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Emission/Emitters.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"
#include "compiler/Kernels/Nest/Reductions.h"
#include "compiler/Kernels/VectorMath/CombiningKind.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {

/// An indexed dim of the destination, or a run of adjacent dims that are not indexed.
struct Axis {
  int64_t size;
  AffineExpr variable; ///< loop variable of the copy; in an update, the target index
  Value indices;       ///< null for a run of dims
  AffineExpr follows;  ///< loop over the updates whose variable `indices` repeat, or null

  bool isRun() const { return !indices; }
  bool isData() const { return indices && !follows; }
};

class Scatter : private IndexArithmetic {
public:
  Scatter(KernelFunction &kernel, ScatterOp op)
      : IndexArithmetic(kernel.builder, op.getLoc()), kernel(kernel), op(op),
        space(op.getContext()), point(kernel.elementEmitter(space)) {}

  void plan();
  /// Whether one thread is as fast as several.
  bool isSmall();
  void emit();

private:
  void planLoops();
  void planAxes();
  void chooseOwned();
  int64_t countPieces(const Axis &axis) const;

  SmallVector<const Axis *> runs() const;
  /// Whether the last axis is indexed by data, so that updates are not contiguous along it: the
  /// loops over the runs are then outside those over the updates.
  bool walksLines() const { return axes.back().isData(); }

  void emitCopy();
  void emitUpdateLoops(ArrayRef<AffineExpr> rest);
  void emitUpdate();
  void combine();

  /// Loops over `rest`; the last axis of the destination is vectorized.
  void walk(ArrayRef<const Axis *> rest, llvm::function_ref<void()> innermost);
  void walkLanes(const Axis &axis, llvm::function_ref<void()> innermost);

  bool isLast(const Axis &axis) const { return &axis == &axes.back(); }
  unsigned variableOf(AffineExpr dim) const { return cast<AffineDimExpr>(dim).getPosition(); }

  KernelFunction &kernel;
  ScatterOp op;
  IndexSpace space;
  ElementEmitter point;

  SmallVector<Axis> axes;
  Index loops;       ///< loops over the updates, one per dim of the indices
  Index copyIndex;   ///< index into the destination, in the axes' variables
  Index targetIndex; ///< index into the destination for an update
  Index updateIndex;
  int64_t width = 1, block = 1; ///< lanes; elements of the last axis in a piece
  const Axis *owned = nullptr;
  Value low, high;           ///< this thread's range of the owned axis
  Value lowBlock, highBlock; ///< the same in blocks, if it is the last axis
};

} // namespace

/// The loop whose variable `indices` equal at `index`, or null.
static AffineExpr repeatedLoop(Value indices, Index index, const IndexSpace &space) {
  while (auto view = throughView(indices, index, space))
    std::tie(indices, index) = *view;
  auto generic = indices.getDefiningOp<linalg::GenericOp>();
  if (!generic || generic.getNumDpsInputs() != 0)
    return nullptr;
  auto cast = generic.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::IndexCastOp>();
  auto iota = cast ? cast.getIn().getDefiningOp<linalg::IndexOp>() : nullptr;
  if (!iota)
    return nullptr;
  FailureOr<Index> iteration = iterationAt(generic, 0, index, space);
  AffineExpr expr = succeeded(iteration) ? (*iteration)[iota.getDim()] : nullptr;
  return isa_and_present<AffineDimExpr>(expr) ? expr : nullptr;
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

void Scatter::planLoops() {
  for (int64_t size : tensorType(op.getIndices().front()).getShape())
    loops.push_back(size == 1 ? space.constant(0) : space.addDim(size));
}

void Scatter::planAxes() {
  ArrayRef<int64_t> shape = tensorType(op.getOperand()).getShape();
  updateIndex = loops;
  int64_t rank = shape.size();
  for (int64_t dim = 0; dim < rank;) {
    const int64_t *indexed = llvm::find(op.getIndexedDims(), dim);
    if (indexed != op.getIndexedDims().end()) {
      Value indices = op.getIndices()[indexed - op.getIndexedDims().begin()];
      AffineExpr follows = repeatedLoop(indices, loops, space);
      if (follows && space.extent(variableOf(follows)) > shape[dim])
        follows = nullptr;
      axes.push_back({shape[dim], space.addDim(shape[dim]), indices, follows});
      copyIndex.push_back(axes.back().variable);
      targetIndex.push_back(follows ? follows : axes.back().variable);
      ++dim;
      continue;
    }
    int64_t first = dim;
    while (dim < rank && !llvm::is_contained(op.getIndexedDims(), dim))
      ++dim;
    ArrayRef<int64_t> run = shape.slice(first, dim - first);
    int64_t size = ShapedType::getNumElements(run);
    // Size-1 dims need no loop.
    if (size == 1) {
      for (Index *index : {&copyIndex, &targetIndex, &updateIndex})
        index->append(run.size(), space.constant(0));
      continue;
    }
    axes.push_back({size, space.addDim(size), Value(), AffineExpr()});
    Index along = space.delinearize(axes.back().variable, run);
    for (Index *index : {&copyIndex, &targetIndex, &updateIndex})
      llvm::append_range(*index, along);
  }
}

int64_t Scatter::countPieces(const Axis &axis) const {
  return isLast(axis) ? llvm::divideCeil(axis.size, block) : axis.size;
}

/// The outermost loop axis, if it gives every thread enough pieces; else the axis with the most
/// pieces, for which every thread has to test all updates.
void Scatter::chooseOwned() {
  constexpr int64_t enoughPieces = 8;
  for (const Axis &axis : axes)
    if (!axis.isData() && countPieces(axis) >= enoughPieces) {
      owned = &axis;
      return;
    }
  owned = &axes.front();
  for (const Axis &axis : axes)
    if (countPieces(axis) > countPieces(*owned))
      owned = &axis;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void Scatter::walk(ArrayRef<const Axis *> rest, llvm::function_ref<void()> innermost) {
  if (rest.empty())
    return innermost();
  const Axis &axis = *rest.front();
  if (isLast(axis))
    return walkLanes(axis, innermost);
  bool isOwned = &axis == owned;
  emitLoop(builder, loc, isOwned ? low : constant(0), isOwned ? high : constant(axis.size), 1, {},
           [&](Value variable, ValueRange) {
             point.setDim(variableOf(axis.variable), variable);
             point.forget();
             walk(rest.drop_front(), innermost);
             return SmallVector<Value>();
           });
  point.forget();
}

void Scatter::walkLanes(const Axis &axis, llvm::function_ref<void()> innermost) {
  auto vectors = [&](Value base, int64_t extent) {
    emitLaneLoop(point, variableOf(axis.variable), base, extent, width, {}, [&](Value, ValueRange) {
      innermost();
      return SmallVector<Value>();
    });
    point.setLanes(Lanes());
  };
  if (&axis != owned)
    return vectors(constant(0), axis.size);
  int64_t pieces = countPieces(axis), tail = axis.size - (pieces - 1) * block;
  emitLoop(builder, loc, lowBlock, highBlock, 1, {}, [&](Value piece, ValueRange) {
    Value base = times(piece, block);
    if (tail == block || pieces == 1) {
      vectors(base, tail);
      return SmallVector<Value>();
    }
    Value isTail = is(arith::CmpIPredicate::eq, piece, constant(pieces - 1));
    emitIf(builder, loc, isTail, [&] { vectors(base, tail); }, [&] { vectors(base, block); });
    return SmallVector<Value>();
  });
}

SmallVector<const Axis *> Scatter::runs() const {
  SmallVector<const Axis *> found;
  for (const Axis &axis : axes)
    if (axis.isRun())
      found.push_back(&axis);
  return found;
}

void Scatter::emitCopy() {
  auto all = llvm::map_to_vector(axes, [](const Axis &axis) { return &axis; });
  walk(all, [&] {
    point.store(kernel.rootBuffers.front(), copyIndex, point.emitAt(op.getOperand(), copyIndex));
  });
}

void Scatter::emitUpdateLoops(ArrayRef<AffineExpr> rest) {
  if (rest.empty())
    return emitUpdate();
  auto dim = dyn_cast<AffineDimExpr>(rest.front());
  if (!dim)
    return emitUpdateLoops(rest.drop_front());
  Value first = constant(0), last = constant(space.extent(dim.getPosition()));
  if (owned->follows == dim) {
    first = low;
    last = arith::MinSIOp::create(builder, loc, last, high);
  }
  emitLoop(builder, loc, first, last, 1, {}, [&](Value variable, ValueRange) {
    point.setDim(dim.getPosition(), variable);
    emitUpdateLoops(rest.drop_front());
    return SmallVector<Value>();
  });
}

/// The updates at one index, if they are in the destination and belong to this thread.
void Scatter::emitUpdate() {
  point.forget();
  Value inside;
  for (const Axis &axis : axes) {
    if (!axis.isData())
      continue;
    Value at = point.emitAt(axis.indices, loops).parts.front();
    at = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), at);
    Value offset = at, size = constant(axis.size);
    if (&axis == owned) {
      offset = subtract(at, low);
      size = subtract(high, low);
    }
    Value fits = is(arith::CmpIPredicate::ult, offset, size);
    inside = inside ? arith::AndIOp::create(builder, loc, inside, fits).getResult() : fits;
    point.setDim(variableOf(axis.variable), at);
  }
  auto update = [&] {
    if (walksLines())
      combine();
    else
      walk(runs(), [&] { combine(); });
  };
  if (inside)
    emitIf(builder, loc, inside, update);
  else
    update();
  point.forget();
}

/// How updates combine, if they do. Stored bools are 0 and 1.
static std::optional<ReduceKind> reductionOf(ScatterKind kind) {
  switch (kind) {
  case ScatterKind::set:
    return std::nullopt;
  case ScatterKind::sum:
    return ReduceKind::sum;
  case ScatterKind::prod:
    return ReduceKind::prod;
  case ScatterKind::max:
    return ReduceKind::max;
  case ScatterKind::min:
    return ReduceKind::min;
  }
  llvm_unreachable("unknown kind");
}

void Scatter::combine() {
  const Buffer &result = kernel.rootBuffers.front();
  Emitted update = point.emitAt(op.getUpdates(), updateIndex);
  if (std::optional<ReduceKind> kind = reductionOf(op.getKind())) {
    vector::CombiningKind how = combiningKindOf(*kind, getElementTypeOrSelf(op.getType()));
    Emitted old = point.load(result, targetIndex);
    SmallVector<Value, 4> updates = old.uniform ? update.parts : point.asVectors(update);
    for (auto [part, next] : llvm::zip_equal(old.parts, updates))
      part = vector::makeArithReduction(builder, loc, how, part, next);
    update = old;
  }
  point.store(result, targetIndex, update);
}

void Scatter::plan() {
  Type element = getElementTypeOrSelf(op.getType());
  width = kernel.target.lanes(std::max(32u, element.getIntOrFloatBitWidth()));
  block = maxLaneGroups * width;
  planLoops();
  planAxes();
  chooseOwned();
}

bool Scatter::isSmall() {
  int64_t elements = tensorType(op.getOperand()).getNumElements();
  int64_t updates = tensorType(op.getUpdates()).getNumElements();
  // Parallel execution costs a barrier, and a working set spread over the caches of several cores.
  constexpr int64_t smallWork = 16 << 10;
  if (elements + updates < smallWork)
    return true;
  // Whether an update belongs to the thread is an unpredictable branch.
  constexpr int64_t worthABranch = 8;
  int64_t indices = tensorType(op.getIndices().front()).getNumElements();
  return owned->isData() && updates < worthABranch * indices && elements < worthABranch * indices;
}

void Scatter::emit() {
  std::tie(low, high) = kernel.share(countPieces(*owned));
  if (isLast(*owned)) {
    lowBlock = low;
    highBlock = high;
    low = times(lowBlock, block);
    high = times(highBlock, block);
    high = arith::MinSIOp::create(builder, loc, high, constant(owned->size));
  }
  emitCopy();
  if (tensorType(op.getUpdates()).getNumElements() == 0)
    return;
  if (walksLines())
    walk(runs(), [&] { emitUpdateLoops(loops); });
  else
    emitUpdateLoops(loops);
}

bool weft::isSmallScatter(KernelFunction &kernel) {
  auto op = onlyOp<ScatterOp>(kernel.source);
  if (!op || tensorType(op.getOperand()).getNumElements() == 0)
    return true;
  Scatter scatter(kernel, op);
  scatter.plan();
  return scatter.isSmall();
}

LogicalResult weft::emitScatter(KernelFunction &kernel) {
  auto op = onlyOp<ScatterOp>(kernel.source);
  if (!op || kernel.roots.size() != 1 || kernel.roots.front() != op.getResult())
    return failure();
  if (tensorType(op.getOperand()).getNumElements() != 0) {
    Scatter scatter(kernel, op);
    scatter.plan();
    scatter.emit();
  }
  int64_t updates = tensorType(op.getUpdates()).getNumElements();
  kernel.setWork(op.getKind() == ScatterKind::set ? 0 : updates);
  return success();
}
