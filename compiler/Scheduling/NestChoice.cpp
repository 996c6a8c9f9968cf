// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vectors run along a loop of the grid if memory is contiguous there, and otherwise along the
// reduced dims; cells grow until they amortize their index arithmetic.
#include "compiler/Scheduling/NestChoice.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Emission/Epilogue.h"
#include "compiler/Kernels/Emission/ParallelDim.h"
#include "compiler/Kernels/Nest/CachedRow.h"
#include "compiler/Kernels/Nest/NestLoops.h"
#include "compiler/Kernels/Nest/Reductions.h"
#include "compiler/Scheduling/Choices.h"
#include "compiler/Scheduling/WorkEstimate.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {

class NestChooser {
public:
  NestChooser(func::FuncOp kernel, ArrayRef<StoreTarget> targets, unsigned leader,
              const TargetInfo &target);

  NestSchedule choose(MutableArrayRef<bool> done, const WorkEstimate &work);

private:
  NestLoops chooseLoops();
  NestLoops splitLoops();
  void chooseRoles();
  void chooseLanes();
  bool scanInLanes();
  bool lanesFollowGrid() const;
  void chooseTranspose();
  bool canLoad(unsigned loop) const;
  void chooseCells();
  void growCell(int64_t elements, SmallVector<int64_t> &inner);
  void fuse(MutableArrayRef<bool> done);
  void chooseReductions();
  std::pair<int64_t, int64_t> loadsOfLanes() const;
  int64_t operandToCache(const ReductionDemand &reduction, ArrayRef<CachedRow> before) const;

  func::FuncOp kernel;
  ArrayRef<StoreTarget> targets;
  unsigned leader;
  const TargetInfo &target;
  NestSchedule schedule;
  NestLoops loops;
};

} // namespace

/// Elements of a cell that amortize its index arithmetic.
static constexpr int64_t cellElements = 4096;

/// Whether all elements that a kernel reads, computes or stores are at most one byte wide.
static bool computesInBytes(func::FuncOp kernel) {
  auto isByte = [](Type type) {
    Type element = getElementTypeOrSelf(type);
    return element.isIntOrFloat() && element.getIntOrFloatBitWidth() <= 8;
  };
  bool found = llvm::all_of(kernel.getArgumentTypes(), isByte);
  kernel.walk([&](Operation *op) { found &= llvm::all_of(op->getResultTypes(), isByte); });
  return found;
}

static int64_t chooseWidth(func::FuncOp kernel, Value stored, const TargetInfo &target) {
  // Vectors of bytes only if nothing is widened, and with AVX-512, which has byte masks.
  constexpr int64_t maskedBytes = 64;
  bool inBytes = target.vectorBytes == maskedBytes && computesInBytes(kernel);
  unsigned narrowest = inBytes ? 8 : 32;
  return target.lanes(std::max(narrowest, tensorType(stored).getElementTypeBitWidth()));
}

NestChooser::NestChooser(func::FuncOp kernel, ArrayRef<StoreTarget> targets, unsigned leader,
                         const TargetInfo &target)
    : kernel(kernel), targets(targets), leader(leader), target(target), schedule([&] {
        NestSchedule first;
        first.targets = {leader};
        first.width = chooseWidth(kernel, targets[leader].tensor, target);
        return first;
      }()),
      loops(chooseLoops()) {}

//===----------------------------------------------------------------------===//
// Loops and their roles
//===----------------------------------------------------------------------===//

/// A pointwise nest with contiguous accesses is one flat loop, unless it would need divisions per
/// element to recover an index.
NestLoops NestChooser::chooseLoops() {
  ArrayRef<int64_t> shape = tensorType(targets[leader].tensor).getShape();
  if (shape.size() > 1) {
    int64_t total = ShapedType::getNumElements(shape);
    NestLoops flat = *NestLoops::of(kernel, targets[leader], total);
    const AccessAnalysis &demand = flat.demand;
    if (demand.reductions.empty() && demand.scans.empty() && !demand.readsIndex &&
        stridedAccesses(demand.accesses, 0, flat.space) == 0 &&
        flat.space.coefficientOf(flat.stored(), 0) == 1) {
      schedule.loops = {total};
      return flat;
    }
  }
  return splitLoops();
}

/// A loop for each dim. It is split in two if an index divides it: the inner part would otherwise
/// recompute a reduction for each element, or read memory element by element.
NestLoops NestChooser::splitLoops() {
  for (int64_t size : tensorType(targets[leader].tensor).getShape())
    if (size != 1)
      schedule.loops.push_back(size);
  while (true) {
    NestLoops split = *NestLoops::of(kernel, targets[leader], schedule.loops);
    ParallelDim divided = dividedDim(split.demand, split.space, split.count, schedule.width);
    if (!divided)
      return split;
    auto [loop, divisor] = *divided;
    schedule.loops[loop] /= divisor;
    schedule.loops.insert(schedule.loops.begin() + loop + 1, divisor);
  }
}

void NestChooser::chooseRoles() {
  llvm::SmallBitVector parallel = loops.parallel();
  for (unsigned loop = 0; loop < loops.count; ++loop)
    (parallel[loop] ? schedule.grid : schedule.rows).push_back(loop);
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

/// Chooses a loop with a row in each lane, unless vector accesses would be strided.
bool NestChooser::scanInLanes() {
  std::optional<unsigned> row = loops.scannedLoop(schedule.rows);
  if (!row)
    return false;
  const IndexSpace &space = loops.space;
  AffineExpr stored = loops.stored();
  auto isContiguous = [&](unsigned loop) {
    return stridedAccesses(loops.demand.accesses, loop, space) == 0 &&
           space.coefficientOf(stored, loop) == 1;
  };
  bool rowsAre = isContiguous(*row) && llvm::all_of(loops.demand.scans, [&](const auto &scan) {
                   return stridedAccesses(loops.demand.accesses, scan.along, space) == 0;
                 });
  for (int64_t loop : llvm::reverse(schedule.grid)) {
    if (space.extent(loop) < schedule.width / 2)
      continue;
    if (isContiguous(loop)) {
      schedule.lane = loop;
      schedule.scans = NestSchedule::Lanes;
      return true;
    }
    if (rowsAre && schedule.lane < 0 && space.extent(*row) >= schedule.width) {
      schedule.lane = loop;
      schedule.scans = NestSchedule::Squares;
    }
  }
  return schedule.lane >= 0;
}

/// Whether the innermost dim of the result is on the grid, and reductions are not contiguous along
/// other dims, which would be worth scalar stores.
bool NestChooser::lanesFollowGrid() const {
  ArrayRef<int64_t> grid = schedule.grid, rows = schedule.rows;
  if (!loops.demand.scans.empty() || grid.empty() || (!rows.empty() && grid.back() < rows.back()))
    return false;
  int64_t alongGrid = 0, alongReduced = 0;
  for (const ReductionDemand &reduction : loops.demand.reductions) {
    alongGrid += stridedAccesses(reduction.accesses, grid.back(), loops.space);
    int64_t least = reduction.accesses.size();
    for (unsigned dim : reduction.reducedDims)
      if (loops.space.extent(dim) >= schedule.width)
        least = std::min(least, stridedAccesses(reduction.accesses, dim, loops.space));
    alongReduced += least;
  }
  return loops.demand.reductions.empty() || alongGrid <= alongReduced;
}

void NestChooser::chooseLanes() {
  if (!loops.demand.scans.empty())
    schedule.scans = NestSchedule::Rows;
  if (scanInLanes())
    return;
  if (lanesFollowGrid()) {
    schedule.lane = schedule.grid.back();
    if (loops.demand.reductions.empty())
      chooseTranspose();
  } else if (!schedule.rows.empty()) {
    schedule.lane = schedule.rows.back();
  }
}

/// Whether squares along this loop and the lanes are worth transposing.
bool NestChooser::canLoad(unsigned loop) const {
  int64_t half = schedule.width / 2;
  return loop != schedule.lane && loops.space.extent(loop) >= half &&
         loops.space.extent(schedule.lane) >= half;
}

/// Looks for a loop along which loads are contiguous, if they are not along the lanes of the
/// stores. If some are, and all others along one other loop, only the latter are transposed.
void NestChooser::chooseTranspose() {
  int64_t least = stridedAccesses(loops.demand.accesses, schedule.lane, loops.space);
  for (int64_t loop : schedule.grid) {
    int64_t strided = stridedAccesses(loops.demand.accesses, loop, loops.space);
    if (strided >= least || !canLoad(loop))
      continue;
    schedule.transpose = NestSchedule::Results;
    schedule.load = loop;
    least = strided;
  }
  if (least == 0)
    return;
  SmallVector<Access> reads = loops.stridedReads(schedule.lane);
  for (int64_t loop : schedule.grid) {
    bool suits = canLoad(loop) && llvm::all_of(reads, [&](const Access &access) {
                   return loops.isContiguousRead(access, loop);
                 });
    if (!suits)
      continue;
    schedule.transpose = NestSchedule::Reads;
    schedule.load = loop;
    return;
  }
}

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

void NestChooser::chooseCells() {
  if (schedule.isVertical()) {
    llvm::erase(schedule.grid, schedule.lane);
    int64_t extent = loops.space.extent(schedule.lane);
    int64_t vectors = schedule.groups * schedule.width;
    if (schedule.scansInLanes()) {
      bool squares = schedule.scans == NestSchedule::Squares;
      schedule.block = std::min(extent, squares ? schedule.width : vectors);
    } else if (schedule.load >= 0) {
      llvm::erase(schedule.grid, schedule.load);
      schedule.block = std::min(extent, schedule.width);
    } else if (loops.demand.reductions.empty()) {
      // Add whole rows to a cell until it amortizes its index arithmetic.
      schedule.block = std::min(extent, cellElements);
      if (schedule.block == extent)
        growCell(extent, schedule.rows);
    } else {
      schedule.block = std::min(extent, vectors);
    }
  }
  // Likewise for small reductions, as of a window.
  if (!loops.demand.reductions.empty() && loops.demand.scans.empty()) {
    int64_t elements = 1;
    for (int64_t loop : schedule.rows)
      elements *= loops.space.extent(loop);
    for (const ReductionDemand &reduction : loops.demand.reductions)
      elements = std::max(elements, loops.space.count(reduction.reducedDims));
    growCell(schedule.block * elements, schedule.cell);
  }
}

/// Moves inner loops of the grid to `inner` until a cell, of `elements` so far, amortizes its index
/// arithmetic.
void NestChooser::growCell(int64_t elements, SmallVector<int64_t> &inner) {
  SmallVector<int64_t> &grid = schedule.grid;
  while (!grid.empty() && elements * loops.space.extent(grid.back()) <= cellElements) {
    elements *= loops.space.extent(grid.back());
    inner.insert(inner.begin(), grid.pop_back_val());
  }
}

/// Other targets that the nest computes anyway.
void NestChooser::fuse(MutableArrayRef<bool> done) {
  done[leader] = true;
  if (schedule.load >= 0)
    return;
  for (unsigned number = 0; number < done.size(); ++number)
    if (!done[number] && loops.indexOf(targets[number].tensor, schedule)) {
      schedule.targets.push_back(number);
      done[number] = true;
    }
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

int64_t weft::chooseReducedLanes(const ReductionDemand &reduction, const IndexSpace &space) {
  constexpr int64_t fewestLanes = 4;
  int64_t best = -1, least = 0;
  if (!canReduceLanes(reduction))
    return best;
  for (auto [number, dim] : llvm::enumerate(reduction.reducedDims)) {
    if (space.extent(dim) < fewestLanes)
      continue;
    int64_t strided = stridedAccesses(reduction.accesses, dim, space);
    if (best < 0 || strided <= least) {
      best = number;
      least = strided;
    }
  }
  return best;
}

/// An operand of `reduction` that is expensive to compute and read again by what follows, or -1.
int64_t NestChooser::operandToCache(const ReductionDemand &reduction,
                                    ArrayRef<CachedRow> before) const {
  // Short rows stay in registers; long ones would evict other data from the caches.
  constexpr int64_t shortest = 32, percentOfRow = 25;
  linalg::GenericOp generic = reduction.generic;
  int64_t extent = loops.space.count(reduction.reducedDims);
  for (int64_t operand = 0; operand < generic.getNumDpsInputs() && extent >= shortest; ++operand) {
    if (!CachedRow::canBe(reduction, operand))
      continue;
    CachedRow row(reduction, operand, loops.space);
    auto producer = row.getTensor().getDefiningOp<linalg::GenericOp>();
    int64_t bytes = extent * row.elementType().getIntOrFloatBitWidth() / 8;
    if (!producer || !isTranscendental(producer) || bytes > target.l2Bytes * percentOfRow / 100)
      continue;
    bool isWantedElsewhere = llvm::any_of(loops.demand.visited, [&](const auto &visit) {
      return visit.first == row.getTensor() && row.at() != ArrayRef(visit.second) &&
             row.placeOf(visit.second, loops.space);
    });
    bool isKeptAlready = llvm::any_of(before, [&](const CachedRow &other) {
      return other.getTensor() == row.getTensor() && other.placeOf(row.at(), loops.space);
    });
    if (isWantedElsewhere && !isKeptAlready)
      return operand;
  }
  return -1;
}

/// Reads whose place in memory is no linear function of `dim`: each lane computes its own, and
/// checks the guards of every operand of a concatenation.
static int64_t scatteredAccesses(ArrayRef<Access> accesses, unsigned dim, const IndexSpace &space) {
  return llvm::count_if(accesses, [&](const Access &access) {
    return access.position && !space.coefficientOf(*access.position, dim);
  });
}

/// Loads of single elements in the code of a point: of unrolled reductions, and of all of them as
/// loops.
std::pair<int64_t, int64_t> NestChooser::loadsOfLanes() const {
  int64_t unrolled = 0, looped = 0;
  for (const ReductionDemand &reduction : loops.demand.reductions) {
    int64_t steps = loops.space.count(reduction.reducedDims);
    int64_t loads = scatteredAccesses(reduction.accesses, schedule.lane, loops.space);
    unrolled += (steps <= schedule.unroll ? steps : 1) * loads;
    looped += loads;
  }
  int64_t lanes = std::min(schedule.block, schedule.groups * schedule.width);
  return {unrolled * lanes, looped * lanes};
}

void NestChooser::chooseReductions() {
  // Loops cost less than code that no cache of instructions holds.
  constexpr int64_t mostLoads = 256;
  if (schedule.isVertical()) {
    auto [unrolled, looped] = loadsOfLanes();
    if (unrolled > mostLoads)
      schedule.unroll = 1;
    if (unrolled > mostLoads && looped > mostLoads)
      schedule.groups = 1;
  }
  SmallVector<CachedRow, 0> kept;
  for (const ReductionDemand &reduction : loops.demand.reductions) {
    bool inLanes = schedule.isVertical();
    schedule.reducedLanes.push_back(inLanes ? -1 : chooseReducedLanes(reduction, loops.space));
    int64_t cached = inLanes ? -1 : operandToCache(reduction, kept);
    schedule.cachedOperands.push_back(cached);
    if (cached >= 0)
      kept.emplace_back(reduction, cached, loops.space);
  }
}

NestSchedule NestChooser::choose(MutableArrayRef<bool> done, const WorkEstimate &work) {
  chooseRoles();
  chooseLanes();
  chooseCells();
  fuse(done);
  chooseReductions();
  int64_t cells = 1;
  for (int64_t loop : schedule.grid)
    cells *= loops.space.extent(loop);
  if (schedule.isVertical())
    cells *= llvm::divideCeil(loops.space.extent(schedule.lane), schedule.block);
  schedule.claim = work.leastPieces(cells);
  return schedule;
}

SmallVector<int64_t> weft::chooseInteriors(func::FuncOp kernel) {
  // Short rows are cheaper to store with their padding, under masks, than to pad separately.
  constexpr int64_t longRow = 128;
  bool mayStorePadding = !needsInteriors(kernel);
  SmallVector<int64_t> interiors;
  for (auto [number, target] : llvm::enumerate(storeTargets(kernel, {}))) {
    tensor::PadOp pad = paddingOf(target, kernel);
    if (!pad)
      continue;
    bool endsRows = pad.getStaticLow().back() + pad.getStaticHigh().back() > 0;
    bool isShort = endsRows && pad.getSourceType().getShape().back() < longRow;
    if (!isShort || !mayStorePadding)
      interiors.push_back(number);
  }
  return interiors;
}

/// The nests that store the targets of `kernel`, linalg on tensors, in the order in which they run.
static SmallVector<NestSchedule, 1> chooseNests(func::FuncOp kernel, const WorkEstimate &work,
                                                const TargetInfo &target) {
  SmallVector<int64_t> interiors = chooseInteriors(kernel);
  SmallVector<StoreTarget> targets = storeTargets(kernel, interiors);
  SmallVector<bool> done(targets.size(), false);
  SmallVector<NestSchedule, 1> nests;
  // Later targets may depend on earlier ones: the last leads.
  for (int64_t leader = done.size() - 1; leader >= 0; --leader) {
    if (done[leader])
      continue;
    if (tensorType(targets[leader].tensor).getNumElements() == 0) {
      nests.emplace_back().targets = {leader};
      done[leader] = true;
    } else {
      nests.push_back(NestChooser(kernel, targets, leader, target).choose(done, work));
    }
    llvm::copy_if(nests.back().targets, std::back_inserter(nests.back().interiors),
                  [&](int64_t number) { return llvm::is_contained(interiors, number); });
  }
  return nests;
}

FailureOr<ChosenSchedule> weft::scheduleNest(const KernelToSchedule &kernel) {
  WorkEstimate work(kernel.kernel);
  ChosenSchedule schedule{kernel.isSerial(work.isSmall())};
  for (const NestSchedule &nest : chooseNests(kernel.kernel, work, kernel.target))
    schedule.parts.push_back(kernel.part(nest));
  return schedule;
}
