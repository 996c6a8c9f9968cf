// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementwise, row and window kernels: a parallel grid of cells; in each cell first the reductions,
// each with its own loops, then the loops that store the roots. Vectors run along a loop of the
// grid, so that each lane computes its own reduction, or along the reduced dims.
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Emission/BufferReuse.h"
#include "compiler/Kernels/Emission/ConcatRegions.h"
#include "compiler/Kernels/Emission/RegisterTranspose.h"
#include "compiler/Kernels/Emission/StoreTarget.h"
#include "compiler/Kernels/Nest/LaneScans.h"
#include "compiler/Kernels/Nest/NestLoops.h"
#include "compiler/Kernels/Nest/Scans.h"
#include "compiler/Kernels/Nest/TransposedLoads.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {

/// A target, and its index in terms of the nest's loops.
struct NestRoot {
  const StoreTarget *target;
  Index index;
};

class LoopNest {
public:
  /// The part of `schedule` that leads is the leader of `loops`.
  LoopNest(KernelFunction &kernel, NestLoops loops, NestSchedule schedule)
      : kernel(kernel), schedule(std::move(schedule)), loops(std::move(loops)),
        space(this->loops.space), demand(this->loops.demand), point(kernel.elementEmitter(space)),
        vectors{this->schedule.width, this->schedule.groups}, width(this->schedule.width),
        vertical(this->schedule.isVertical()) {}

  /// Takes all targets of the schedule. Fails, with a diagnostic, on what cannot be honoured.
  LogicalResult readRoots(ArrayRef<StoreTarget> targets);
  void emit();
  int64_t flops() const;

private:
  SmallVector<unsigned> dims(ArrayRef<int64_t> numbers) const {
    return SmallVector<unsigned>(numbers.begin(), numbers.end());
  }
  unsigned laneDim() const { return schedule.lane; }
  unsigned loadDim() const { return schedule.load; }
  bool onGrid(const NestRoot &root) const { return !variesAlong(root.index, schedule.rows); }
  void store(const NestRoot &root, const Emitted &value);
  Index indexOf(const NestRoot &root) const;
  int64_t cellCount() const { return ShapedType::getNumElements(gridShape); }

  void readSchedule();
  void prepareReductions();
  Value rowCounts();
  void emitNumberedCell(Value number);
  void emitCell(Value block, int64_t extent);
  void emitReductions();
  void emitStores(bool gridOnly);
  void emitRowLoops(ArrayRef<unsigned> dims);
  void emitPoints(Value base, int64_t extent);
  void emitTransposed(Value base, int64_t extent);

  KernelFunction &kernel;
  NestSchedule schedule;
  NestLoops loops;
  IndexSpace &space;
  const AccessAnalysis &demand;
  ElementEmitter point;
  VectorBlock vectors;
  int64_t width;
  bool vertical; ///< the lanes are a loop of the grid
  SmallVector<NestRoot> roots;
  SmallVector<unsigned> gridDims, cellDims, rowDims;
  std::optional<TransposedLoads> transposedLoads; ///< if only some reads are transposed
  std::optional<LaneScans> laneScans;
  int64_t laneBlocks = 1;
  SmallVector<int64_t> laneBounds; ///< boundaries of concatenation operands along the lanes
  AffineExpr lanePart;             ///< the lane loop within the current operand; null if not split
  SmallVector<int64_t> gridShape;
  SmallVector<Buffer> lines; ///< scan results, in scratch
  ReducedValues reduced;
  SmallVector<std::optional<CachedRow>, 0> keptRows; ///< one per reduction, if cached
  size_t filledRows = 0;                             ///< rows filled so far
};

} // namespace

LogicalResult LoopNest::readRoots(ArrayRef<StoreTarget> targets) {
  if (llvm::Error error = loops.verify(schedule))
    return kernel.refuse() << llvm::toString(std::move(error));
  roots.push_back({loops.leader, loops.index});
  for (int64_t number : ArrayRef(schedule.targets).drop_front()) {
    std::optional<Index> index = loops.indexOf(targets[number].tensor, schedule);
    if (!index)
      return kernel.refuse() << "schedule: expected targets that the first one is computed from, "
                                "found "
                             << number;
    roots.push_back({&targets[number], *index});
  }
  return success();
}

void LoopNest::readSchedule() {
  gridDims = dims(schedule.grid);
  cellDims = dims(schedule.cell);
  rowDims = dims(schedule.rows);
  if (vertical)
    laneBlocks = llvm::divideCeil(space.extent(laneDim()), schedule.block);
  for (unsigned dim : gridDims)
    gridShape.push_back(space.extent(dim));
  gridShape.push_back(laneBlocks);
  bool isPointwise = demand.reductions.empty() && !schedule.scansInLanes();
  if (vertical && isPointwise && schedule.load < 0 && laneBlocks == 1)
    laneBounds = concatBounds(demand, laneDim(), space);
  if (schedule.transpose == NestSchedule::Reads)
    transposedLoads.emplace(kernel, point, space, loadDim(), laneDim(), width,
                            loops.stridedReads(laneDim()));
}

int64_t LoopNest::flops() const {
  int64_t points = cellCount() * schedule.block * space.count(cellDims);
  return demand.flops(space, points, tensorType(loops.leader->tensor).getNumElements());
}

void LoopNest::emitReductions() {
  filledRows = 0;
  for (auto [reduction, row, lanes] :
       llvm::zip_equal(demand.reductions, keptRows, schedule.reducedLanes)) {
    ReductionSchedule how{vectors, lanes, schedule.unroll};
    reduced.add(reduction, emitReduction(point, reduction, how, row ? &*row : nullptr));
    ++filledRows;
  }
}

void LoopNest::emitStores(bool gridOnly) {
  for (const NestRoot &root : roots)
    if (onGrid(root) == gridOnly)
      store(root, point.emitAt(root.target->tensor, indexOf(root)));
}

Index LoopNest::indexOf(const NestRoot &root) const {
  if (!lanePart)
    return root.index;
  AffineExpr lane = getAffineDimExpr(laneDim(), lanePart.getContext());
  return llvm::map_to_vector<4>(
      root.index, [&](AffineExpr expr) { return space.simplify(expr.replace(lane, lanePart)); });
}

void LoopNest::store(const NestRoot &root, const Emitted &value) {
  point.store(kernel.rootBuffers[root.target->root], root.target->rootIndex(indexOf(root)), value);
}

void LoopNest::emitRowLoops(ArrayRef<unsigned> dims) {
  if (dims.empty()) {
    emitStores(/*gridOnly=*/false);
    return;
  }
  unsigned dim = dims.front();
  if (!vertical && static_cast<int64_t>(dim) == schedule.lane) {
    Value zero = arith::ConstantIndexOp::create(kernel.builder, kernel.loc, 0);
    emitLaneLoop(point, dim, zero, space.extent(dim), vectors, {}, [&](Value, ValueRange) {
      emitRowLoops(dims.drop_front());
      return SmallVector<Value>();
    });
    point.setLanes(Lanes());
    return;
  }
  emitLoop(kernel.builder, kernel.loc, 0, space.extent(dim), 1, {},
           [&](Value variable, ValueRange) {
             point.setDim(dim, variable);
             point.forget();
             emitRowLoops(dims.drop_front());
             return SmallVector<Value>();
           });
  point.forget();
}

void LoopNest::emitCell(Value block, int64_t extent) {
  OpBuilder &builder = kernel.builder;
  Location loc = kernel.loc;
  reduced.clear();
  point.forget();
  auto body = [&] {
    reduced.clear();
    point.forget();
    emitReductions();
    emitStores(/*gridOnly=*/true);
    if (!rowDims.empty())
      emitRowLoops(rowDims);
  };
  if (!vertical) {
    point.setLanes(Lanes());
    for (auto [scan, line] : llvm::zip_equal(demand.scans, lines))
      emitScan(point, scan, line);
    emitLoops(point, cellDims, body);
    return;
  }
  Value size = arith::ConstantIndexOp::create(builder, loc, laneBlocks == 1 ? 0 : schedule.block);
  Value base = arith::MulIOp::create(builder, loc, block, size);
  if (schedule.load >= 0) {
    emitTransposed(base, extent);
    return;
  }
  if (laneScans) {
    laneScans->emit(base, extent);
    return;
  }
  if (demand.reductions.empty()) {
    // The lane loop is the innermost.
    emitLoops(point, rowDims, [&] { emitPoints(base, extent); });
    return;
  }
  emitLoops(point, cellDims, [&] {
    emitLaneLoop(point, laneDim(), base, extent, vectors, {}, [&](Value, ValueRange) {
      body();
      return SmallVector<Value>();
    });
  });
}

/// The points of one row, with a loop per concatenation operand: a single loop would load every
/// vector from every operand, under masks, and select.
void LoopNest::emitPoints(Value base, int64_t extent) {
  auto loop = [&](unsigned dim, Value from, int64_t size) {
    emitLaneLoop(point, dim, from, size, vectors, {}, [&](Value, ValueRange) {
      emitStores(/*gridOnly=*/false);
      emitStores(/*gridOnly=*/true);
      return SmallVector<Value>();
    });
  };
  if (laneBounds.size() <= 2)
    return loop(laneDim(), base, extent);
  Value zero = arith::ConstantIndexOp::create(kernel.builder, kernel.loc, 0);
  for (auto [begin, end] : llvm::zip(laneBounds, ArrayRef(laneBounds).drop_front())) {
    AffineExpr inPart = space.addDim(end - begin);
    lanePart = inPart + begin;
    loop(cast<AffineDimExpr>(inPart).getPosition(), zero, end - begin);
  }
  lanePart = {};
}

void LoopNest::emitTransposed(Value base, int64_t extent) {
  const NestRoot &root = roots.front();
  int64_t rows = space.extent(loadDim()), whole = rows / width * width;
  auto squareAt = [&](Value variable, int64_t count) {
    point.setDim(loadDim(), variable);
    if (transposedLoads)
      transposedLoads->emitSquare(base, extent, count, [&] {
        emitStores(/*gridOnly=*/false);
        emitStores(/*gridOnly=*/true);
      });
    else
      emitSquare(
          point, loadDim(), laneDim(), base, extent, count, width,
          [&] { return point.asVectors(point.emitAt(root.target->tensor, root.index)).front(); },
          [&](const Emitted &value) { store(root, value); });
    return SmallVector<Value>();
  };
  emitLoop(kernel.builder, kernel.loc, 0, whole, width, {},
           [&](Value variable, ValueRange) { return squareAt(variable, width); });
  if (whole < rows)
    squareAt(arith::ConstantIndexOp::create(kernel.builder, kernel.loc, whole), rows - whole);
}

/// Scratch for the rows of scans and reductions, and how emitted values are found again.
void LoopNest::prepareReductions() {
  auto storeRoots = [this] {
    emitStores(/*gridOnly=*/false);
    emitStores(/*gridOnly=*/true);
  };
  if (schedule.scansInLanes()) {
    ScanDims dims{rowDims.front(), laneDim(), schedule.scans == NestSchedule::Squares};
    laneScans.emplace(point, demand.scans, dims, vectors, storeRoots);
  } else {
    for (const ScanDemand &scan : demand.scans) {
      int64_t extent = space.extent(scan.along);
      Type element = getElementTypeOrSelf(CumulativeOp(scan.op).getType());
      lines.push_back({kernel.scratch(element, extent), {extent}});
    }
  }
  for (auto [reduction, operand] : llvm::zip_equal(demand.reductions, schedule.cachedOperands)) {
    keptRows.emplace_back();
    if (operand >= 0)
      keptRows.back().emplace(reduction, operand, space).allocate(kernel);
  }
  point.setOverride(
      [this](ElementEmitter &, Value tensor, ArrayRef<AffineExpr> index) -> std::optional<Emitted> {
        if (laneScans)
          return laneScans->find(tensor);
        if (transposedLoads)
          if (std::optional<Emitted> found = transposedLoads->find(tensor, index))
            return found;
        for (auto [scan, line] : llvm::zip_equal(demand.scans, lines))
          if (scan.op->getResult(0) == tensor)
            return point.load(line, index[scan.dim]);
        for (const std::optional<CachedRow> &row : ArrayRef(keptRows).take_front(filledRows))
          if (std::optional<Emitted> found = row ? row->find(point, tensor, index) : std::nullopt)
            return found;
        return reduced.find(tensor, index);
      });
}

/// The cell of that number, delinearized into grid loops and lane block, innermost first.
void LoopNest::emitNumberedCell(Value number) {
  OpBuilder &builder = kernel.builder;
  Location loc = kernel.loc;
  SmallVector<Value> position(gridShape.size());
  for (int64_t i = gridShape.size() - 1; i > 0; --i) {
    Value size = arith::ConstantIndexOp::create(builder, loc, gridShape[i]);
    position[i] = arith::RemUIOp::create(builder, loc, number, size);
    number = arith::DivUIOp::create(builder, loc, number, size);
  }
  position[0] = number;
  for (auto [i, dim] : llvm::enumerate(gridDims))
    point.setDim(dim, position[i]);
  Value block = position.back();
  int64_t tail = vertical ? space.extent(laneDim()) % schedule.block : 0;
  auto emitCells = [&] {
    if (tail == 0 || laneBlocks == 1) {
      emitCell(block, schedule.block);
      return;
    }
    Value last = arith::ConstantIndexOp::create(builder, loc, laneBlocks - 1);
    Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, block, last);
    emitIf(
        builder, loc, isLast, [&] { emitCell(block, tail); },
        [&] { emitCell(block, schedule.block); });
  };
  if (Value counts = rowCounts())
    emitIf(builder, loc, counts, emitCells);
  else
    emitCells();
}

void LoopNest::emit() {
  readSchedule();
  prepareReductions();
  kernel.forEachPiece(cellCount(), schedule.claim, [&](Value cell) { emitNumberedCell(cell); });
}

/// Whether the row of the cell at the point counts; null if all do, or a cell has several.
Value LoopNest::rowCounts() {
  ArrayRef<int64_t> bound = kernel.bound();
  if (bound.empty() || !bound[0])
    return {};
  Value counts;
  for (const NestRoot &root : roots) {
    if (root.target->tensor != kernel.roots[root.target->root])
      return {};
    auto type = cast<RankedTensorType>(root.target->tensor.getType());
    int64_t size = type.getDimSize(bound[3]);
    auto dim = dyn_cast<AffineDimExpr>(root.index[bound[3]]);
    if (!dim || !llvm::is_contained(gridDims, dim.getPosition()) ||
        space.extent(dim.getPosition()) != size)
      return {};
    if (!counts)
      counts = arith::CmpIOp::create(kernel.builder, kernel.loc, arith::CmpIPredicate::ult,
                                     point.dimValue(dim.getPosition()), kernel.rowsEnd(size));
  }
  return counts;
}

/// The nests of `kernel`, by the parts of its schedule. Fails, with a diagnostic, unless they store
/// each target that has elements once.
static FailureOr<SmallVector<std::unique_ptr<LoopNest>>> readNests(KernelFunction &kernel,
                                                                   ArrayRef<StoreTarget> targets) {
  SmallVector<std::unique_ptr<LoopNest>> nests;
  SmallVector<int64_t> stored(targets.size(), 0);
  for (DictionaryAttr part : kernel.schedule.getParts()) {
    auto schedule = readFields<NestSchedule>(part);
    for (int64_t target : schedule.targets) {
      if (target >= int64_t(targets.size()))
        return kernel.refuse() << "schedule: expected targets below " << targets.size()
                               << ", found " << target;
      ++stored[target];
    }
    if (schedule.targets.empty())
      continue;
    const StoreTarget &leader = targets[schedule.targets.front()];
    if (tensorType(leader.tensor).getNumElements() == 0)
      continue;
    auto loops = NestLoops::of(kernel.source, leader, schedule.loops);
    if (!loops)
      return kernel.refuse() << "schedule: expected loops that divide the dims of target "
                             << schedule.targets.front();
    nests.push_back(std::make_unique<LoopNest>(kernel, std::move(*loops), std::move(schedule)));
    if (failed(nests.back()->readRoots(targets)))
      return failure();
  }
  for (auto [number, target] : llvm::enumerate(targets))
    if (stored[number] != 1 && tensorType(target.tensor).getNumElements() != 0)
      return kernel.refuse() << "schedule: expected target " << number << " once, found it "
                             << stored[number] << " times";
  return nests;
}

/// The targets of which the parts of the schedule store the interior alone. Fails, with a
/// diagnostic, on those that cannot be stored so, or that a part does not store.
static FailureOr<SmallVector<int64_t>> readInteriors(KernelFunction &kernel) {
  SmallVector<int64_t> interiors;
  for (DictionaryAttr part : kernel.schedule.getParts()) {
    auto schedule = readFields<NestSchedule>(part);
    for (int64_t number : schedule.interiors)
      if (!llvm::is_contained(schedule.targets, number))
        return kernel.refuse() << "schedule: expected interiors among targets, found " << number;
    llvm::append_range(interiors, schedule.interiors);
  }
  if (llvm::Error error = verifyInteriors(kernel.source, interiors))
    return kernel.refuse() << llvm::toString(std::move(error));
  return interiors;
}

LogicalResult weft::emitLoopNest(KernelFunction &kernel) {
  FailureOr<SmallVector<int64_t>> interiors = readInteriors(kernel);
  if (failed(interiors))
    return failure();
  SmallVector<StoreTarget> targets = storeTargets(kernel.source, *interiors);
  auto nests = readNests(kernel, targets);
  if (failed(nests))
    return failure();
  int64_t flops = 0;
  for (const std::unique_ptr<LoopNest> &nest : *nests) {
    nest->emit();
    flops += nest->flops();
  }
  emitBorders(kernel, [&](unsigned root) {
    return llvm::any_of(*interiors, [&](int64_t number) { return targets[number].root == root; });
  });
  // Another nest, or padding, might overwrite rows before this nest reduces them.
  bool isOneNest = targets.size() == 1 && targets.front().tensor == kernel.roots.front();
  markInPlace(kernel, /*reducesRowsFirst=*/isOneNest);
  kernel.setWork(flops);
  return success();
}
