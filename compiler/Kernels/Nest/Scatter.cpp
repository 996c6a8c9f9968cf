// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scatter: each thread owns a range of one axis of the destination, copies it, and then applies, in
// order, those of all updates that fall into it. No element has two writers, so the result does not
// depend on the number of threads. A loop axis is partitioned by loop bounds, an indexed one by a
// comparison that doubles as the bounds check.
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"
#include "compiler/Kernels/Nest/Reductions.h"
#include "compiler/Kernels/Nest/ScatterAxes.h"
#include "compiler/Kernels/VectorMath/CombiningKind.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weft;

namespace {

using Axis = ScatterAxes::Axis;

class Scatter : private IndexArithmetic {
public:
  Scatter(KernelFunction &kernel, ScatterOp op)
      : IndexArithmetic(kernel.builder, op.getLoc()), kernel(kernel), op(op), plan(op),
        point(kernel.elementEmitter(plan.space)) {}

  /// Fails, with a diagnostic, on what cannot be honoured.
  LogicalResult read(DictionaryAttr part);
  void emit();

private:
  int64_t countPieces(const Axis &axis) const { return plan.countPieces(axis, schedule.block()); }
  VectorBlock vectors() const { return {schedule.width, schedule.groups}; }

  SmallVector<const Axis *> runs() const;
  /// Whether the last axis is indexed by data, so that updates are not contiguous along it: the
  /// loops over the runs are then outside those over the updates.
  bool walksLines() const { return plan.axes.back().isData(); }

  void emitCopy();
  void emitUpdateLoops(ArrayRef<AffineExpr> rest);
  void emitUpdate();
  void combine();

  /// Loops over `rest`; the last axis of the destination is vectorized.
  void walk(ArrayRef<const Axis *> rest, llvm::function_ref<void()> innermost);
  void walkLanes(const Axis &axis, llvm::function_ref<void()> innermost);

  unsigned variableOf(AffineExpr dim) const { return cast<AffineDimExpr>(dim).getPosition(); }

  KernelFunction &kernel;
  ScatterOp op;
  ScatterAxes plan;
  ElementEmitter point;
  ScatterSchedule schedule;
  const Axis *owned = nullptr;
  Value low, high;           ///< this thread's range of the owned axis
  Value lowBlock, highBlock; ///< the same in blocks, if it is the last axis
};

} // namespace

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void Scatter::walk(ArrayRef<const Axis *> rest, llvm::function_ref<void()> innermost) {
  if (rest.empty())
    return innermost();
  const Axis &axis = *rest.front();
  if (plan.isLast(axis))
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
  auto walkBlock = [&](Value base, int64_t extent) {
    emitLaneLoop(point, variableOf(axis.variable), base, extent, vectors(), {},
                 [&](Value, ValueRange) {
                   innermost();
                   return SmallVector<Value>();
                 });
    point.setLanes(Lanes());
  };
  if (&axis != owned)
    return walkBlock(constant(0), axis.size);
  int64_t block = schedule.block();
  int64_t pieces = countPieces(axis), tail = axis.size - (pieces - 1) * block;
  emitLoop(builder, loc, lowBlock, highBlock, 1, {}, [&](Value piece, ValueRange) {
    Value base = times(piece, block);
    if (tail == block || pieces == 1) {
      walkBlock(base, tail);
      return SmallVector<Value>();
    }
    Value isTail = is(arith::CmpIPredicate::eq, piece, constant(pieces - 1));
    emitIf(builder, loc, isTail, [&] { walkBlock(base, tail); }, [&] { walkBlock(base, block); });
    return SmallVector<Value>();
  });
}

SmallVector<const Axis *> Scatter::runs() const {
  SmallVector<const Axis *> found;
  for (const Axis &axis : plan.axes)
    if (axis.isRun())
      found.push_back(&axis);
  return found;
}

void Scatter::emitCopy() {
  auto all = llvm::map_to_vector(plan.axes, [](const Axis &axis) { return &axis; });
  walk(all, [&] {
    point.store(kernel.rootBuffers.front(), plan.copyIndex,
                point.emitAt(op.getOperand(), plan.copyIndex));
  });
}

void Scatter::emitUpdateLoops(ArrayRef<AffineExpr> rest) {
  if (rest.empty())
    return emitUpdate();
  auto dim = dyn_cast<AffineDimExpr>(rest.front());
  if (!dim)
    return emitUpdateLoops(rest.drop_front());
  Value first = constant(0), last = constant(plan.space.extent(dim.getPosition()));
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
  for (const Axis &axis : plan.axes) {
    if (!axis.isData())
      continue;
    Value at = point.emitAt(axis.indices, plan.loops).parts.front();
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
  Emitted update = point.emitAt(op.getUpdates(), plan.updateIndex);
  if (std::optional<ReduceKind> kind = reductionOf(op.getKind())) {
    vector::CombiningKind how = combiningKindOf(*kind, getElementTypeOrSelf(op.getType()));
    Emitted old = point.load(result, plan.targetIndex);
    SmallVector<Value, 4> updates = old.uniform ? update.parts : point.asVectors(update);
    for (auto [part, next] : llvm::zip_equal(old.parts, updates))
      part = vector::makeArithReduction(builder, loc, how, part, next);
    update = old;
  }
  point.store(result, plan.targetIndex, update);
}

LogicalResult Scatter::read(DictionaryAttr part) {
  schedule = readFields<ScatterSchedule>(part);
  if (schedule.owned >= int64_t(plan.axes.size()))
    return kernel.refuse() << "schedule: expected owned below " << plan.axes.size()
                           << " axes, found " << schedule.owned;
  owned = &plan.axes[schedule.owned];
  return success();
}

void Scatter::emit() {
  std::tie(low, high) = kernel.share(countPieces(*owned));
  if (plan.isLast(*owned)) {
    lowBlock = low;
    highBlock = high;
    low = times(lowBlock, schedule.block());
    high = times(highBlock, schedule.block());
    high = arith::MinSIOp::create(builder, loc, high, constant(owned->size));
  }
  emitCopy();
  if (tensorType(op.getUpdates()).getNumElements() == 0)
    return;
  if (walksLines())
    walk(runs(), [&] { emitUpdateLoops(plan.loops); });
  else
    emitUpdateLoops(plan.loops);
}

LogicalResult weft::emitScatter(KernelFunction &kernel) {
  auto op = onlyOp<ScatterOp>(kernel.source);
  if (!op || kernel.roots.size() != 1 || kernel.roots.front() != op.getResult())
    return failure();
  if (tensorType(op.getOperand()).getNumElements() != 0) {
    Scatter scatter(kernel, op);
    if (failed(scatter.read(kernel.schedule.getParts().front())))
      return failure();
    scatter.emit();
  }
  int64_t updates = tensorType(op.getUpdates()).getNumElements();
  kernel.setWork(op.getKind() == ScatterKind::set ? 0 : updates);
  return success();
}
