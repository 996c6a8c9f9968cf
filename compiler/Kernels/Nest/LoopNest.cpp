// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementwise, row and window kernels: a parallel grid of cells; in each cell first the reductions,
// each with its own loops, then the loops that store the roots. Vectors run along a grid dim if
// memory is contiguous there (each lane computes its own reduction), otherwise along the reduced
// dims.
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Emission/BufferReuse.h"
#include "compiler/Kernels/Emission/ConcatRegions.h"
#include "compiler/Kernels/Emission/Emitters.h"
#include "compiler/Kernels/Emission/ParallelDim.h"
#include "compiler/Kernels/Emission/RegisterTranspose.h"
#include "compiler/Kernels/Emission/StoreTarget.h"
#include "compiler/Kernels/Emission/WorkEstimate.h"
#include "compiler/Kernels/Nest/LaneScans.h"
#include "compiler/Kernels/Nest/Reductions.h"
#include "compiler/Kernels/Nest/Scans.h"
#include "compiler/Kernels/Nest/TransposedLoads.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {

/// A target fused into the nest of another, and its index in terms of that nest's dims.
struct NestRoot {
  const StoreTarget *target;
  Index index;
};

class LoopNest {
public:
  LoopNest(KernelFunction &kernel, ArrayRef<StoreTarget> targets, unsigned leader)
      : kernel(kernel), targets(targets), leader(leader), space(kernel.emitted.getContext()),
        point(kernel.elementEmitter(space)) {}

  /// Plans the loops for the leading target; others may be fused.
  void plan(MutableArrayRef<bool> done);
  void emit(const WorkEstimate &work);
  int64_t flops() const;

private:
  void planDims();
  unsigned planRootDims(Value root);
  void chooseLaneDim();
  void chooseTransposedLoads();
  void planGrid();
  void growCell(int64_t elements, SmallVector<unsigned> &dims);
  void adopt(MutableArrayRef<bool> done);
  bool onGrid(const NestRoot &root) const;
  void store(const NestRoot &root, const Emitted &value);
  Index indexOf(const NestRoot &root) const;

  Value rowCounts();
  void emitCell(Value block, int64_t extent);
  void emitReductions();
  void emitStores(bool gridOnly);
  void emitRowLoops(ArrayRef<unsigned> dims);
  void emitPoints(Value base, int64_t extent);
  void emitTransposed(Value base, int64_t extent);

  KernelFunction &kernel;
  ArrayRef<StoreTarget> targets;
  unsigned leader;
  IndexSpace space;
  ElementEmitter point;
  AccessAnalysis demand;
  SmallVector<NestRoot> roots;
  SmallVector<unsigned> gridDims;
  SmallVector<unsigned> cellDims;  ///< grid dims iterated within a cell
  SmallVector<unsigned> rowDims;   ///< dims of the loops after the reductions
  std::optional<unsigned> laneDim; ///< vectorized dim
  std::optional<unsigned> loadDim; ///< reads are contiguous along this dim: transpose
  std::optional<TransposedLoads> transposedLoads; ///< those, if only some reads
  std::optional<ScanDims> scanDims;               ///< scans with one row per lane
  std::optional<LaneScans> laneScans;
  bool vertical = false; ///< laneDim is a grid dim
  int64_t width = 1;
  int64_t laneBlock = 1; ///< values of laneDim in a cell
  int64_t laneBlocks = 1;
  SmallVector<int64_t> laneBounds; ///< boundaries of concatenation operands along laneDim
  AffineExpr lanePart;             ///< laneDim within the current operand; null if not split
  SmallVector<int64_t> gridShape;
  SmallVector<Buffer> lines; ///< scan results, in scratch
  ReducedValues reduced;
  SmallVector<std::optional<CachedRow>, 0> keptRows; ///< one per reduction, if worth caching
  size_t filledRows = 0;                             ///< rows filled so far
};

} // namespace

/// Elements of a cell that amortize its index arithmetic.
constexpr int64_t cellElements = 4096;

/// Whether all elements that a kernel reads, computes or stores are at most one byte wide.
static bool computesInBytes(const KernelFunction &kernel) {
  auto isByte = [](Type type) {
    Type element = getElementTypeOrSelf(type);
    return element.isIntOrFloat() && element.getIntOrFloatBitWidth() <= 8;
  };
  func::FuncOp source = kernel.source;
  bool found = llvm::all_of(source.getArgumentTypes(), isByte);
  source.walk([&](Operation *op) { found &= llvm::all_of(op->getResultTypes(), isByte); });
  return found;
}

void LoopNest::plan(MutableArrayRef<bool> done) {
  Type element = tensorType(targets[leader].tensor).getElementType();
  // Vectors of bytes only if nothing is widened, and with AVX-512, which has byte masks.
  constexpr int64_t maskedBytes = 64;
  bool inBytes = kernel.target.vectorBytes == maskedBytes && computesInBytes(kernel);
  unsigned narrowest = inBytes ? 8 : 32;
  width = kernel.target.lanes(std::max(narrowest, element.getIntOrFloatBitWidth()));
  planDims();
  chooseLaneDim();
  planGrid();
  adopt(done);
}

/// Creates the dims of the leader's `root` loops. A dim is split in two if an index divides it: the
/// inner part would otherwise recompute a reduction for each element, or read memory element by
/// element. Returns the number of dims.
unsigned LoopNest::planRootDims(Value root) {
  struct Part {
    unsigned dim;
    int64_t size;
  };
  SmallVector<Part> parts;
  for (auto [dim, size] : llvm::enumerate(tensorType(root).getShape()))
    if (size != 1)
      parts.push_back({unsigned(dim), size});
  while (true) {
    space = IndexSpace(kernel.emitted.getContext());
    Index index(tensorType(root).getRank(), space.constant(0));
    for (auto [dim, size] : parts)
      index[dim] = space.simplify(index[dim] * size + space.addDim(size));
    demand = demandOf(root, index, space);
    auto divided = dividedDim(demand, space, parts.size(), width);
    if (!divided) {
      roots.push_back({&targets[leader], index});
      return parts.size();
    }
    auto [part, divisor] = *divided;
    parts[part].size /= divisor;
    parts.insert(parts.begin() + part + 1, {parts[part].dim, divisor});
  }
}

void LoopNest::planDims() {
  const StoreTarget &target = targets[leader];
  Value root = target.tensor;
  ArrayRef<int64_t> shape = tensorType(root).getShape();
  ArrayRef<int64_t> rootShape = tensorType(kernel.roots[target.root]).getShape();
  int64_t total = ShapedType::getNumElements(shape);
  // A pointwise kernel with contiguous accesses is one flat loop, unless it would need divisions
  // per element to recover an index.
  if (shape.size() > 1) {
    IndexSpace flat(kernel.emitted.getContext());
    Index index = flat.delinearize(flat.addDim(total), shape);
    AccessAnalysis flatDemand = demandOf(root, index, flat);
    AffineExpr stored = flat.linearize(target.rootIndex(index), rootShape);
    if (flatDemand.reductions.empty() && flatDemand.scans.empty() && !flatDemand.readsIndex &&
        stridedAccesses(flatDemand.accesses, 0, flat) == 0 && flat.coefficientOf(stored, 0) == 1) {
      space = flat;
      roots.push_back({&target, index});
      demand = std::move(flatDemand);
      gridDims = {0};
      return;
    }
  }
  unsigned rootDims = planRootDims(root);
  llvm::SmallBitVector grid(rootDims);
  if (demand.reductions.empty())
    grid.set();
  for (unsigned dim = 0; dim < rootDims; ++dim)
    if (demand.reducesFor(dim))
      grid.set(dim);
  // The scanned dim is not parallel: a row belongs to one cell.
  for (const ScanDemand &scan : demand.scans)
    for (unsigned dim = 0; dim < rootDims; ++dim)
      if (scan.line().isFunctionOfDim(dim))
        grid.reset(dim);
  for (unsigned dim = 0; dim < rootDims; ++dim)
    (grid[dim] ? gridDims : rowDims).push_back(dim);
}

void LoopNest::chooseLaneDim() {
  const NestRoot &root = roots.front();
  AffineExpr stored = space.linearize(root.target->rootIndex(root.index),
                                      tensorType(kernel.roots[root.target->root]).getShape());
  scanDims = chooseScanDims(demand, gridDims, rowDims, stored, space, width);
  if (scanDims) {
    laneDim = scanDims->lane;
    vertical = true;
    return;
  }
  if (demand.scans.empty() && !gridDims.empty() &&
      (rowDims.empty() || gridDims.back() > rowDims.back())) {
    // The innermost dim of the result is on the grid. Vectorize along it unless the reductions are
    // contiguous along other dims; stores are then scalar.
    unsigned dim = gridDims.back();
    int64_t strided = 0, rows = 0;
    for (const ReductionDemand &reduction : demand.reductions) {
      strided += stridedAccesses(reduction.accesses, dim, space);
      int64_t least = reduction.accesses.size();
      for (unsigned reducedDim : reduction.reducedDims)
        if (space.extent(reducedDim) >= width)
          least = std::min(least, stridedAccesses(reduction.accesses, reducedDim, space));
      rows += least;
    }
    vertical = demand.reductions.empty() || strided <= rows;
    if (vertical)
      laneDim = dim;
  }
  if (!vertical && !rowDims.empty())
    laneDim = rowDims.back();
  if (!vertical || !demand.reductions.empty() || roots.size() > 1)
    return;
  // Look for a dim along which loads are contiguous, if they are not along the lane dim of the
  // stores.
  int64_t least = stridedAccesses(demand.accesses, *laneDim, space);
  for (unsigned dim : gridDims) {
    int64_t strided = stridedAccesses(demand.accesses, dim, space);
    if (dim == *laneDim || strided >= least || space.extent(dim) < width / 2 ||
        space.extent(*laneDim) < width / 2)
      continue;
    loadDim = dim;
    least = strided;
  }
  if (least > 0)
    chooseTransposedLoads();
}

/// If some reads are contiguous along the lanes and all others along one other dim, transposes only
/// the latter.
void LoopNest::chooseTransposedLoads() {
  for (unsigned dim : gridDims) {
    if (dim == *laneDim || space.extent(dim) < width / 2 || space.extent(*laneDim) < width / 2)
      continue;
    SmallVector<Access> found;
    llvm::copy_if(demand.accesses, std::back_inserter(found), [&](const Access &access) {
      return stridedAccesses(access, *laneDim, space) > 0;
    });
    if (!llvm::all_of(found, [&](const Access &access) {
          return access.position && space.coefficientOf(*access.position, dim) == 1;
        }))
      continue;
    loadDim = dim;
    transposedLoads.emplace(kernel, point, space, dim, *laneDim, width, std::move(found));
    return;
  }
}

void LoopNest::planGrid() {
  if (vertical) {
    llvm::erase(gridDims, *laneDim);
    int64_t extent = space.extent(*laneDim);
    if (scanDims) {
      laneBlock = std::min(extent, scanDims->squares ? width : maxLaneGroups * width);
    } else if (loadDim) {
      llvm::erase(gridDims, *loadDim);
      laneBlock = std::min(extent, width);
    } else if (demand.reductions.empty()) {
      // Add whole rows to a cell until it amortizes its index arithmetic.
      laneBlock = std::min(extent, cellElements);
      if (laneBlock == extent) {
        laneBounds = concatBounds(demand, *laneDim, space);
        growCell(laneBlock, rowDims);
      }
    } else {
      laneBlock = std::min(extent, maxLaneGroups * width);
    }
    laneBlocks = llvm::divideCeil(extent, laneBlock);
  }
  // Likewise for small reductions, as of a window.
  if (!demand.reductions.empty() && demand.scans.empty()) {
    int64_t elements = space.count(rowDims);
    for (const ReductionDemand &reduction : demand.reductions)
      elements = std::max(elements, space.count(reduction.reducedDims));
    growCell(laneBlock * elements, cellDims);
  }
  for (unsigned dim : gridDims)
    gridShape.push_back(space.extent(dim));
  gridShape.push_back(laneBlocks);
}

/// Moves inner grid dims to `dims` until a cell, of `elements` so far, amortizes its index
/// arithmetic.
void LoopNest::growCell(int64_t elements, SmallVector<unsigned> &dims) {
  while (!gridDims.empty() && elements * space.extent(gridDims.back()) <= cellElements) {
    elements *= space.extent(gridDims.back());
    dims.insert(dims.begin(), gridDims.pop_back_val());
  }
}

bool LoopNest::onGrid(const NestRoot &root) const {
  for (AffineExpr expr : root.index)
    for (unsigned dim : rowDims)
      if (expr.isFunctionOfDim(dim))
        return false;
  return true;
}

/// Fuses other roots whose values this nest computes.
void LoopNest::adopt(MutableArrayRef<bool> done) {
  done[leader] = true;
  if (loadDim)
    return;
  for (unsigned number = 0; number < done.size(); ++number) {
    if (done[number])
      continue;
    Value root = targets[number].tensor;
    for (const auto &[tensor, index] : demand.visited) {
      if (tensor != root)
        continue;
      // Each element exactly once: distinct dims that cover the shape, and all grid dims.
      llvm::SmallBitVector used(space.size());
      bool covers = true;
      for (auto [expr, size] : llvm::zip_equal(index, tensorType(root).getShape())) {
        if (size == 1) {
          // Under a concatenation the index may vary with a loop and be 0 only at one of its
          // values.
          covers = covers && isa<AffineConstantExpr>(expr);
          continue;
        }
        auto dim = dyn_cast<AffineDimExpr>(expr);
        covers =
            covers && dim && !used[dim.getPosition()] && space.extent(dim.getPosition()) == size;
        if (covers)
          used.set(dim.getPosition());
      }
      for (unsigned dim : llvm::concat<unsigned>(gridDims, cellDims))
        covers = covers && used[dim];
      if (vertical)
        covers = covers && used[*laneDim];
      NestRoot candidate{&targets[number], index};
      bool ofReduction = false;
      for (const ReductionDemand &reduction : demand.reductions)
        for (unsigned dim : reduction.reducedDims)
          ofReduction |= used[dim];
      if (!covers || ofReduction)
        continue;
      bool allRows = llvm::all_of(rowDims, [&](unsigned dim) { return used[dim]; });
      if (!allRows && !onGrid(candidate))
        continue;
      roots.push_back(candidate);
      done[number] = true;
      break;
    }
  }
}

int64_t LoopNest::flops() const {
  int64_t cells = ShapedType::getNumElements(gridShape) * laneBlock * space.count(cellDims);
  return demand.flops(space, cells, tensorType(targets[leader].tensor).getNumElements());
}

void LoopNest::emitReductions() {
  filledRows = 0;
  for (auto [reduction, row] : llvm::zip_equal(demand.reductions, keptRows)) {
    reduced.add(reduction, emitReduction(point, reduction, width, row ? &*row : nullptr));
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
  AffineExpr lane = getAffineDimExpr(*laneDim, lanePart.getContext());
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
  if (!vertical && dim == *laneDim) {
    Value zero = arith::ConstantIndexOp::create(kernel.builder, kernel.loc, 0);
    emitLaneLoop(point, dim, zero, space.extent(dim), width, {}, [&](Value, ValueRange) {
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
  Value size = arith::ConstantIndexOp::create(builder, loc, laneBlocks == 1 ? 0 : laneBlock);
  Value base = arith::MulIOp::create(builder, loc, block, size);
  if (loadDim) {
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
    emitLaneLoop(point, *laneDim, base, extent, width, {}, [&](Value, ValueRange) {
      body();
      return SmallVector<Value>();
    });
  });
}

/// The points of one row, with a loop per concatenation operand: a single loop would load every
/// vector from every operand, under masks, and select.
void LoopNest::emitPoints(Value base, int64_t extent) {
  auto loop = [&](unsigned dim, Value from, int64_t size) {
    emitLaneLoop(point, dim, from, size, width, {}, [&](Value, ValueRange) {
      emitStores(/*gridOnly=*/false);
      emitStores(/*gridOnly=*/true);
      return SmallVector<Value>();
    });
  };
  if (laneBounds.size() <= 2)
    return loop(*laneDim, base, extent);
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
  int64_t rows = space.extent(*loadDim), whole = rows / width * width;
  auto squareAt = [&](Value variable, int64_t count) {
    point.setDim(*loadDim, variable);
    if (transposedLoads)
      transposedLoads->emitSquare(base, extent, count, [&] {
        emitStores(/*gridOnly=*/false);
        emitStores(/*gridOnly=*/true);
      });
    else
      emitSquare(
          point, *loadDim, *laneDim, base, extent, count, width,
          [&] { return point.asVectors(point.emitAt(root.target->tensor, root.index)).front(); },
          [&](const Emitted &value) { store(root, value); });
    return SmallVector<Value>();
  };
  emitLoop(kernel.builder, kernel.loc, 0, whole, width, {},
           [&](Value variable, ValueRange) { return squareAt(variable, width); });
  if (whole < rows)
    squareAt(arith::ConstantIndexOp::create(kernel.builder, kernel.loc, whole), rows - whole);
}

void LoopNest::emit(const WorkEstimate &work) {
  OpBuilder &builder = kernel.builder;
  Location loc = kernel.loc;
  auto storeRoots = [&] {
    emitStores(/*gridOnly=*/false);
    emitStores(/*gridOnly=*/true);
  };
  if (scanDims)
    laneScans.emplace(point, demand.scans, *scanDims, width, storeRoots);
  for (const ScanDemand &scan : demand.scans) {
    if (scanDims)
      break;
    int64_t extent = space.extent(scan.along);
    Type element = getElementTypeOrSelf(CumulativeOp(scan.op).getType());
    lines.push_back({kernel.scratch(element, extent), {extent}});
  }
  // If each lane has its own reduction, a cached row would be a row of vectors: not supported.
  for (size_t i = 0; i < demand.reductions.size(); ++i)
    keptRows.push_back(vertical ? std::nullopt
                                : CachedRow::choose(kernel, demand, keptRows, space));
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

  int64_t cells = ShapedType::getNumElements(gridShape);
  kernel.forEachPiece(cells, work.leastPieces(cells), [&](Value cell) {
    // Delinearize the cell number into grid dims and lane block, innermost first.
    Value rest = cell;
    SmallVector<Value> position(gridShape.size());
    for (int64_t i = gridShape.size() - 1; i > 0; --i) {
      Value size = arith::ConstantIndexOp::create(builder, loc, gridShape[i]);
      position[i] = arith::RemUIOp::create(builder, loc, rest, size);
      rest = arith::DivUIOp::create(builder, loc, rest, size);
    }
    position[0] = rest;
    for (auto [i, dim] : llvm::enumerate(gridDims))
      point.setDim(dim, position[i]);
    Value block = position.back();
    int64_t tail = vertical ? space.extent(*laneDim) % laneBlock : 0;
    auto emitCells = [&] {
      if (tail == 0 || laneBlocks == 1) {
        emitCell(block, laneBlock);
        return;
      }
      Value last = arith::ConstantIndexOp::create(builder, loc, laneBlocks - 1);
      Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, block, last);
      emitIf(
          builder, loc, isLast, [&] { emitCell(block, tail); },
          [&] { emitCell(block, laneBlock); });
    };
    if (Value counts = rowCounts())
      emitIf(builder, loc, counts, emitCells);
    else
      emitCells();
  });
}

/// Whether the row of the cell at the point counts; null if all do, or a cell has several.
Value LoopNest::rowCounts() {
  ArrayRef<int64_t> bound = kernel.bound();
  if (bound.empty() || !bound[0] || targets.size() != roots.size())
    return {};
  Value counts;
  for (const NestRoot &root : roots) {
    if (root.target->tensor != kernel.roots[root.target->root])
      return {};
    auto type = cast<RankedTensorType>(root.target->tensor.getType());
    const auto *size = llvm::find_if(type.getShape(), [](int64_t size) { return size != 1; });
    if (size == type.getShape().end())
      return {};
    auto dim = dyn_cast<AffineDimExpr>(root.index[size - type.getShape().begin()]);
    if (!dim || !llvm::is_contained(gridDims, dim.getPosition()) ||
        space.extent(dim.getPosition()) != *size)
      return {};
    if (!counts)
      counts = arith::CmpIOp::create(kernel.builder, kernel.loc, arith::CmpIPredicate::ult,
                                     point.dimValue(dim.getPosition()), kernel.rowsEnd(*size));
  }
  return counts;
}

LogicalResult weft::emitLoopNest(KernelFunction &kernel) {
  WorkEstimate work(kernel.source);
  SmallVector<StoreTarget> targets = storeTargets(kernel);
  SmallVector<bool> done(targets.size(), false);
  int64_t flops = 0;
  // Later roots may depend on earlier ones: the last leads.
  for (int64_t leader = done.size() - 1; leader >= 0; --leader) {
    if (done[leader])
      continue;
    if (tensorType(targets[leader].tensor).getNumElements() == 0) {
      done[leader] = true;
      continue;
    }
    LoopNest nest(kernel, targets, leader);
    nest.plan(done);
    nest.emit(work);
    flops += nest.flops();
  }
  emitBorders(kernel, [&](auto pad) { return storesBorders(kernel, pad); });
  // Another nest, or padding, might overwrite rows before this nest reduces them.
  bool isOneNest = targets.size() == 1 && targets.front().tensor == kernel.roots.front();
  markInPlace(kernel, /*reducesRowsFirst=*/isOneNest);
  kernel.setWork(flops);
  return success();
}
