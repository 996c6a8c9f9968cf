// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Nest/NestLoops.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Nest/Reductions.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

//===----------------------------------------------------------------------===//
// Index space
//===----------------------------------------------------------------------===//

NestLoops::NestLoops(func::FuncOp kernel, const StoreTarget &leader)
    : leader(&leader), root(tensorType(rootsOf(kernel)[leader.root])), space(kernel.getContext()) {}

std::optional<NestLoops> NestLoops::of(func::FuncOp kernel, const StoreTarget &leader,
                                       ArrayRef<int64_t> extents) {
  NestLoops loops(kernel, leader);
  ArrayRef<int64_t> shape = tensorType(leader.tensor).getShape();
  IndexSpace &space = loops.space;
  loops.count = extents.size();
  int64_t longDims = llvm::count_if(shape, [](int64_t size) { return size != 1; });
  if (extents.size() == 1 && longDims != 1) {
    if (extents.front() != ShapedType::getNumElements(shape))
      return std::nullopt;
    loops.index = space.delinearize(space.addDim(extents.front()), shape);
  } else {
    loops.index.assign(shape.size(), space.constant(0));
    for (auto [dim, size] : llvm::enumerate(shape)) {
      int64_t covered = 1;
      while (covered < size && !extents.empty()) {
        AffineExpr part = space.addDim(extents.front());
        loops.index[dim] = space.simplify(loops.index[dim] * extents.front() + part);
        covered *= extents.front();
        extents = extents.drop_front();
      }
      if (covered != size)
        return std::nullopt;
    }
    if (!extents.empty())
      return std::nullopt;
  }
  loops.demand = demandOf(leader.tensor, loops.index, space);
  return loops;
}

llvm::SmallBitVector NestLoops::parallel() const {
  llvm::SmallBitVector parallel(count, demand.reductions.empty());
  for (unsigned dim = 0; dim < count; ++dim)
    if (demand.reducesFor(dim))
      parallel.set(dim);
  // The scanned dim is not parallel: a row belongs to one cell.
  for (const ScanDemand &scan : demand.scans)
    for (unsigned dim = 0; dim < count; ++dim)
      if (scan.line().isFunctionOfDim(dim))
        parallel.reset(dim);
  return parallel;
}

AffineExpr NestLoops::stored() const {
  return space.linearize(leader->rootIndex(index), root.getShape());
}

bool weft::variesAlong(ArrayRef<AffineExpr> index, ArrayRef<int64_t> loops) {
  return llvm::any_of(index, [&](AffineExpr expr) {
    return llvm::any_of(loops, [&](int64_t loop) { return expr.isFunctionOfDim(loop); });
  });
}

/// The loops that are, alone, an index of `shape`; nothing unless they cover it, each element once.
static std::optional<llvm::SmallBitVector>
coveringLoops(ArrayRef<AffineExpr> index, ArrayRef<int64_t> shape, const IndexSpace &space) {
  llvm::SmallBitVector used(space.size());
  for (auto [expr, size] : llvm::zip_equal(index, shape)) {
    if (size == 1) {
      // Under a concatenation the index may vary with a loop and be 0 only at one of its values;
      // under a pad it may be nowhere.
      auto place = dyn_cast<AffineConstantExpr>(expr);
      if (!place || place.getValue() != 0)
        return std::nullopt;
      continue;
    }
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || used[dim.getPosition()] || space.extent(dim.getPosition()) != size)
      return std::nullopt;
    used.set(dim.getPosition());
  }
  return used;
}

std::optional<Index> NestLoops::indexOf(Value tensor, const NestSchedule &schedule) const {
  for (const auto &[visited, at] : demand.visited) {
    if (visited != tensor)
      continue;
    // One loop over all elements makes an index of several dims of its number.
    if (at == index && tensor.getType() == leader->tensor.getType())
      return at;
    auto used = coveringLoops(at, tensorType(tensor).getShape(), space);
    if (!used)
      continue;
    auto isUsed = [&](int64_t loop) { return used->test(loop); };
    bool ofReduction = llvm::any_of(demand.reductions, [&](const ReductionDemand &reduction) {
      return llvm::any_of(reduction.reducedDims, isUsed);
    });
    // All loops of the grid, and those after the reductions or none of them.
    if (ofReduction || !llvm::all_of(schedule.grid, isUsed) ||
        !llvm::all_of(schedule.cell, isUsed) || (schedule.isVertical() && !isUsed(schedule.lane)))
      continue;
    if (llvm::all_of(schedule.rows, isUsed) || !variesAlong(at, schedule.rows))
      return at;
  }
  return std::nullopt;
}

SmallVector<Access> NestLoops::stridedReads(unsigned lane) const {
  SmallVector<Access> found;
  llvm::copy_if(demand.accesses, std::back_inserter(found),
                [&](const Access &access) { return stridedAccesses(access, lane, space) > 0; });
  return found;
}

bool NestLoops::isContiguousRead(const Access &access, unsigned load) const {
  return access.position && space.coefficientOf(*access.position, load) == 1;
}

std::optional<unsigned> NestLoops::scannedLoop(ArrayRef<int64_t> rows) const {
  if (demand.scans.empty() || !demand.reductions.empty() || rows.size() != 1)
    return std::nullopt;
  unsigned row = rows.front();
  for (const ScanDemand &scan : demand.scans) {
    auto dim = dyn_cast<AffineDimExpr>(scan.line());
    auto isSame = [&](const ScanDemand &other) { return other.op == scan.op; };
    if (!dim || dim.getPosition() != row || space.extent(row) != space.extent(scan.along) ||
        llvm::count_if(demand.scans, isSame) > 1)
      return std::nullopt;
  }
  return row;
}

//===----------------------------------------------------------------------===//
// Checks of a schedule
//===----------------------------------------------------------------------===//

template <typename... Values>
static llvm::Error wrong(const char *format, const Values &...values) {
  return llvm::createStringError("schedule: " + llvm::formatv(format, values...).str());
}

llvm::Error NestLoops::verifyRoles(const NestSchedule &schedule) const {
  SmallVector<int64_t> roles(count, 0);
  SmallVector<int64_t> all =
      llvm::to_vector(llvm::concat<const int64_t>(schedule.grid, schedule.cell, schedule.rows));
  if (schedule.isVertical())
    all.push_back(schedule.lane);
  if (schedule.load >= 0)
    all.push_back(schedule.load);
  for (int64_t loop : all) {
    if (loop >= count)
      return wrong("expected loops below {0}, found {1}", count, loop);
    ++roles[loop];
  }
  for (auto [loop, times] : llvm::enumerate(roles))
    if (times != 1)
      return wrong("expected loop {0} once among grid, cell, rows, lane and load, found it {1} "
                   "times",
                   loop, times);
  llvm::SmallBitVector isParallel = parallel();
  bool isOrdered = !demand.reductions.empty() || !demand.scans.empty();
  for (unsigned loop = 0; loop < count; ++loop) {
    bool isRow = llvm::is_contained(schedule.rows, loop);
    if (isRow ? isOrdered && isParallel[loop] : !isParallel[loop])
      return wrong("expected loop {0} {1} rows, as reductions and scans are computed before them",
                   loop, isRow ? "outside" : "among");
  }
  return llvm::Error::success();
}

llvm::Error NestLoops::verifyLanes(const NestSchedule &schedule) const {
  bool isVertical = schedule.isVertical(), transposes = schedule.transpose != schedule.NoTranspose;
  if (!llvm::isPowerOf2_64(schedule.width))
    return wrong("expected lanes to be a power of two, found {0}", schedule.width);
  if (schedule.lane >= 0 && !isVertical && schedule.lane != schedule.rows.back())
    return wrong("expected lane to be the last of rows, found {0}", schedule.lane);
  int64_t most = isVertical ? space.extent(schedule.lane) : 1;
  if (transposes || schedule.scans == schedule.Squares)
    most = std::min(most, schedule.width);
  if (schedule.block > most)
    return wrong("expected block of at most {0}, found {1}", most, schedule.block);
  if (!schedule.cell.empty() && isVertical && demand.reductions.empty())
    return wrong("expected cell empty, as there are no reductions");
  if (schedule.scans == schedule.NoScans ? !demand.scans.empty() : demand.scans.empty())
    return wrong("expected scans as the kernel has {0}", demand.scans.size());
  if (!demand.scans.empty() && isVertical != schedule.scansInLanes())
    return wrong("expected lane with no other role if scans are in lanes, found {0}",
                 schedule.lane);
  if (schedule.scansInLanes() && !scannedLoop(schedule.rows))
    return wrong("expected scans \"rows\", as they do not run along one loop");
  if (schedule.scans == schedule.Squares && space.extent(schedule.rows.front()) < schedule.width)
    return wrong("expected scans of rows that are shorter than a vector not to be squares");
  if (transposes != (schedule.load >= 0))
    return wrong("expected load -1 if nothing is transposed, and only then");
  if (!transposes)
    return llvm::Error::success();
  if (!isVertical || !demand.reductions.empty() || !demand.scans.empty() ||
      !schedule.rows.empty() || schedule.targets.size() != 1)
    return wrong("expected transpose \"none\", as there is more than one element in a lane");
  if (schedule.transpose == schedule.Reads)
    for (const Access &access : stridedReads(schedule.lane))
      if (!isContiguousRead(access, schedule.load))
        return wrong("expected load along which strided reads are contiguous, found {0}",
                     schedule.load);
  return llvm::Error::success();
}

llvm::Error NestLoops::verifyReductions(const NestSchedule &schedule) const {
  size_t reductions = demand.reductions.size();
  if (schedule.reducedLanes.size() != reductions || schedule.cachedOperands.size() != reductions)
    return wrong("expected reduced_lanes and cached_operands of {0} reductions, found {1} and {2}",
                 reductions, schedule.reducedLanes.size(), schedule.cachedOperands.size());
  for (auto [reduction, lanes, cached] :
       llvm::zip_equal(demand.reductions, schedule.reducedLanes, schedule.cachedOperands)) {
    bool hasLanes = lanes < 0 || (!schedule.isVertical() && canReduceLanes(reduction) &&
                                  lanes < int64_t(reduction.reducedDims.size()));
    if (!hasLanes)
      return wrong("expected reduced_lanes -1, as the reduction has no such lanes, found {0}",
                   lanes);
    // In lanes, a cached row would be a row of vectors.
    if (cached >= 0 && (schedule.isVertical() || !CachedRow::canBe(reduction, cached)))
      return wrong("expected cached_operands -1, as no row of it can be kept, found {0}", cached);
  }
  return llvm::Error::success();
}

llvm::Error NestLoops::verify(const NestSchedule &schedule) const {
  if (llvm::Error error = verifyRoles(schedule))
    return error;
  if (llvm::Error error = verifyLanes(schedule))
    return error;
  return verifyReductions(schedule);
}
