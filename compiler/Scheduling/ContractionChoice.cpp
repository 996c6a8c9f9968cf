// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Scheduling/ContractionChoice.h"
#include "compiler/Kernels/Contraction/AmxContraction.h"
#include "compiler/Kernels/Emission/BlockedSummation.h"
#include "compiler/Kernels/Emission/Prefetch.h"
#include "compiler/Scheduling/ContractionSplit.h"
#include "compiler/Scheduling/ContractionTiles.h"
#include "compiler/Target/CostModel.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <functional>
#include <numeric>

using namespace weft;

static constexpr llvm::StringLiteral unitFields = "matrix_unit=1";

/// Whether hardware prefetchers, which stay within a page, do not follow such a stride.
static bool isStrided(int64_t strideBytes) {
  constexpr int64_t farApart = 1024;
  return strideBytes >= farApart;
}

/// Whether the next panel is worth prefetching: B is packed, and no first-level cache holds it.
static bool fetchesPanels(const ContractionProblem &problem) {
  constexpr int64_t leastPacked = 128 << 10;
  return problem.packedBytes >= leastPacked;
}

/// Whether bfloat16 panels are packed in pairs of steps, which few rows do not pay for.
static bool formsPairs(const ContractionProblem &problem, const TargetInfo &target) {
  constexpr int64_t fewestPairedRows = 4;
  return (problem.pairs || problem.stridedPairs) && target.hasBFloat16 &&
         problem.rowCount * problem.outerRows >= fewestPairedRows;
}

/// A skinny contraction with strided row-major B that exceeds L2: hardware prefetchers do not
/// follow from one step of k to the next. A tile takes all rows and as many vectors as registers
/// allow, for long contiguous reads of each step, and the panels divide evenly among the threads.
static void chooseStream(const ContractionProblem &problem, const TargetInfo &target,
                         ContractionSchedule &schedule, ComparedSchedules *compared) {
  constexpr int64_t stepsAhead = 8, mostRows = 8;
  if (!isStrided(problem.vectorStrideBytes) || problem.outerRows > 1 ||
      problem.rowCount > mostRows || problem.vectorBytes <= target.l2Bytes)
    return;
  schedule.rows = problem.rowCount;
  schedule.stepsAhead = stepsAhead;
  int64_t vectors = llvm::divideCeil(problem.laneCount, schedule.width);
  int64_t most = std::min((target.vectorRegisters - 1) / (problem.rowCount + 1), vectors);
  double bestCost = std::numeric_limits<double>::max();
  if (compared)
    compared->restart();
  for (int64_t groups = most; groups >= (most + 1) / 2; --groups) {
    int64_t panels = llvm::alignTo(llvm::divideCeil(vectors, groups), target.team());
    double cost = StreamedPanels{panels, groups}.ofStep();
    if (compared)
      compared->add(ContractionTiles::fields(schedule.rows, groups),
                    cyclesOf(cost * reducedSteps(problem)));
    if (cost < bestCost) {
      bestCost = cost;
      schedule.groups = groups;
    }
  }
}

/// If A is contiguous across rows and strided along k, each step of k is on a page of its own, and
/// tiles of neighbouring rows share cache lines: whole lines are packed into an A panel, which a
/// few tiles then read from L1. Three lines hold whole tiles of six rows, with B mostly in
/// registers. bfloat16 always needs packing, to form pairs of steps.
static void chooseStrip(const ContractionProblem &problem, const TargetInfo &target,
                        ContractionSchedule &schedule) {
  constexpr int64_t wideLines = 3;
  bool pairs = schedule.paired && problem.stridedPairs, many = target.vectorRegisters >= 32;
  int64_t line = lineBytes / (pairs ? 2 : problem.elementBits / 8);
  if (!pairs &&
      (!isStrided(problem.scalarStrideBytes) || !problem.canSpill || problem.rowCount < line))
    return;
  int64_t vectors = llvm::divideCeil(problem.laneCount, schedule.width), most = many ? 4 : 2;
  bool wide = !pairs && vectors % most == 0 && problem.rowCount >= wideLines * line;
  schedule.stripLine = line;
  schedule.strip = wide ? wideLines * line : line;
  if (wide) {
    schedule.rows = 6;
    schedule.groups = most;
  } else {
    schedule.rows = many ? 8 : 4;
    schedule.groups = vectors % 3 == 0 ? 3 : std::min<int64_t>(2, vectors);
  }
}

/// The divisor of `extent` that is a multiple of `unit`, at most `most`, and in ratio closest to
/// `best`; nothing if parts would be so short that spilling between them costs more than caching
/// gains.
static std::optional<int64_t> choosePart(int64_t extent, int64_t most, int64_t best, int64_t unit) {
  std::optional<int64_t> chosen;
  auto distance = [&](int64_t part) { return double(std::max(part, best)) / std::min(part, best); };
  for (int64_t parts = 1; parts * (most / 4) <= extent; ++parts) {
    int64_t part = extent / parts;
    if (extent % (parts * unit) == 0 && part <= most &&
        (!chosen || distance(part) < distance(*chosen)))
      chosen = part;
  }
  return chosen;
}

/// `steps` of float32, scaled to wider elements to take the same cache space: a tile's A rows stay
/// in L1 and its B panel in L2.
static int64_t stepsInRoomOf(int64_t steps, const ContractionProblem &problem) {
  return steps * 32 / std::max(32u, problem.elementBits);
}

/// Steps of a B panel that stays in L2 beside others.
static int64_t stepsOfCache(const ContractionProblem &problem, const TargetInfo &target) {
  constexpr int64_t ofLargeCache = 768, largeCache = 1 << 20;
  return stepsInRoomOf(target.l2Bytes < largeCache ? ofLargeCache / 2 : ofLargeCache, problem);
}

/// Whether chunks are twice as long, if L2 would hold two panels. With many panels A comes from L3
/// anyway, and the partial sums are spilled half as often.
static bool hasLongChunks(const ContractionProblem &problem, const TargetInfo &target,
                          const ContractionSchedule &schedule) {
  constexpr int64_t manyPanels = 8;
  int64_t stepBytes = schedule.groups * schedule.width * problem.elementBits / 8;
  int64_t fitting = target.l2Bytes / 2 / (stepsOfCache(problem, target) * stepBytes);
  return fitting == 2 && fetchesPanels(problem) && problem.reduced.size() == 1 && !schedule.strip &&
         schedule.panelsOf(problem) >= manyPanels;
}

/// KC: the chunk of a long reduction for which B panels stay in L2, with those of the next chunk
/// unless it `isLong`. For packed A panels it is shorter, as each chunk reads few lines of many
/// pages.
static int64_t chooseChunk(const ContractionProblem &problem, const TargetInfo &target,
                           const ContractionSchedule &schedule, bool isLong) {
  constexpr int64_t ofStrips = 384;
  int64_t best = schedule.strip ? stepsInRoomOf(ofStrips, problem)
                                : stepsOfCache(problem, target) * (isLong ? 2 : 1);
  int64_t most = schedule.strip || isLong ? best : best * 4 / 3;
  int64_t longest = schedule.strip ? best : stepsInRoomOf(1792, problem);
  int64_t innermost = problem.reduced.empty() ? 1 : problem.reduced.back();
  if (problem.reduced.size() != 1 || innermost <= longest || !problem.canSpill)
    return innermost;
  return choosePart(innermost, most, best, /*unit=*/1).value_or(innermost);
}

/// The longest chain of additions. Twice as long for bf16, whose own rounding errors dominate.
static int64_t mostSummands(const ContractionSchedule &schedule) {
  return schedule.paired ? 2 * longestChain : longestChain;
}

/// Steps of a chunk for which a packed A panel stays in L1 beside a B panel.
static int64_t chooseStripSteps(const ContractionProblem &problem,
                                const ContractionSchedule &schedule) {
  int64_t most = mostSummands(schedule), unit = schedule.paired ? 2 : 1;
  if (!problem.canSpill)
    return schedule.chunk;
  return choosePart(schedule.chunk, most, /*best=*/most, unit).value_or(schedule.chunk);
}

/// A depthwise window is fully unrolled: loop overhead would cost as much as its steps.
static int64_t chooseUnroll(const ContractionProblem &problem,
                            const ContractionSchedule &schedule) {
  int64_t steps = schedule.tileSteps();
  constexpr int64_t longestWindow = 8;
  if (schedule.paired)
    return steps % 4 == 0 ? 4 : 2;
  if (problem.lanewise && steps <= longestWindow)
    return steps;
  // The unrolled loop has to divide the steps between prefetches.
  for (int64_t unroll : {4, 3, 2})
    if (steps % unroll == 0 &&
        (!schedule.strip || ContractionSchedule::stepsPerFetch % unroll == 0))
      return unroll;
  return 1;
}

/// Block size at most `most` for the fewest blocks of nearly equal size.
static int64_t evenBlocks(int64_t total, int64_t most) {
  return llvm::divideCeil(total, llvm::divideCeil(total, most));
}

/// Blocked summation: blocks of about equal size, the last may be shorter, and how their sums are
/// added to the totals in memory.
static void chooseSums(const ContractionProblem &problem, ContractionSchedule &schedule) {
  constexpr int64_t least = 64, line = 16, mostTurns = 8;
  int64_t most = mostSummands(schedule), steps = schedule.tileSteps();
  // A block is a multiple of the unrolled loop, and of whole cache lines if the chunk is.
  int64_t unit = steps % line == 0 ? line : schedule.unroll;
  int64_t block = steps > most ? llvm::alignTo(evenBlocks(steps, most), unit) : steps;
  llvm::ArrayRef<int64_t> reduced = problem.reduced;
  schedule.blockDims = reduced.empty() ? 0 : reduced.size() - 1;
  int64_t inside = 1; // steps of outer dims within a block
  while (schedule.blockDims > 0 && block * inside < least)
    inside *= reduced[--schedule.blockDims];

  schedule.segment = block;
  int64_t passes = 1; // iterations of the dims outside a block
  for (int64_t dim = schedule.outerChunks; dim < schedule.blockDims; ++dim)
    passes *= reduced[dim];
  if (passes * llvm::divideCeil(steps, block) == 1)
    return;
  if (inside == 1) {
    schedule.segment = llvm::alignTo(most / mostTurns, unit);
    while (schedule.segment < block && block % schedule.segment != 0)
      schedule.segment += unit;
    schedule.segment = std::min(schedule.segment, block);
  }
  // Each part of the accumulators is added to the totals at least once.
  int64_t segments = passes * llvm::divideCeil(steps, schedule.segment);
  schedule.turns = std::min(most / (schedule.segment * inside), segments);
  schedule.turns = std::max<int64_t>(schedule.turns, 1);
}

/// Whether the rows of a convolution window become chunks: a panel and the prefetched next one do
/// not both fit L2.
static bool dividesWindow(const ContractionProblem &problem, const TargetInfo &target,
                          const ContractionSchedule &schedule) {
  constexpr int64_t longestWindow = 8, percentOfWindow = 20;
  int64_t bytes = schedule.groups * schedule.width * problem.elementBits / 8;
  for (int64_t extent : problem.reduced)
    bytes *= extent;
  return fetchesPanels(problem) && !schedule.matrixUnit && !schedule.paired && problem.canSpill &&
         problem.reduced.size() > 1 && problem.reduced.front() <= longestWindow &&
         bytes > target.l2Bytes * percentOfWindow / 100;
}

/// B panels that stay in L2 while the rows of tiles pass. If A also stays there, one: each panel
/// then comes from memory once either way. A panels are packed again for each block. A long chunk
/// has a block of one panel.
static int64_t choosePanels(const ContractionProblem &problem, const TargetInfo &target,
                            const ContractionSchedule &schedule, bool isLong) {
  if (problem.scalarBytes <= target.l2Bytes / 2 && !schedule.strip)
    return 1;
  int64_t depth = schedule.chunk;
  for (size_t i = 0; i + 1 < problem.reduced.size(); ++i)
    depth *= problem.reduced[i];
  int64_t lanes = schedule.groups * schedule.width;
  int64_t panelBytes =
      std::max<int64_t>(lanes * depth * (schedule.paired ? 2 : problem.elementBits / 8), 1);
  int64_t total = schedule.panelsOf(problem);
  int64_t fitting = target.l2Bytes / 2 / panelBytes;
  // Two panels may take more than half of L2, as A is then read half as often.
  constexpr int64_t percentOfTwo = 80, percentOfStrips = 80;
  if (fitting <= 1 && !isLong && 2 * panelBytes <= target.l2Bytes * percentOfTwo / 100)
    fitting = 2;
  // Packing all A panels again for each block costs more than the L2 misses of larger blocks, where
  // the threads share no L3; not with tiles of two vectors. Each thread still gets at least one
  // block.
  if (schedule.strip && schedule.groups > 2 && total > fitting)
    fitting = std::min<int64_t>(target.l2Bytes * percentOfStrips / 100 / panelBytes,
                                llvm::divideCeil(total, target.team()));
  return evenBlocks(std::max<int64_t>(total, 1), std::max<int64_t>(fitting, 1));
}

/// The product on AMX, whose tiles are padded, and on vectors.
static MatrixProduct matrixProductOf(const ContractionProblem &problem, const TargetInfo &target,
                                     double depth, int64_t panels, int64_t total) {
  int64_t rowCount = problem.rowCount * problem.outerRows;
  MatrixProduct product;
  product.rows = double(llvm::alignTo(rowCount, 32));
  product.lanes = double(problem.outerPanels * llvm::alignTo(problem.laneCount, 32));
  product.depth = depth;
  product.useful =
      double(rowCount) * double(problem.outerPanels * problem.laneCount) * reducedSteps(problem);
  product.panels = panels;
  product.threads = target.team();
  product.splits = problem.matrixParts > 1;
  product.sharesPanels = total >= target.team() * panels;
  product.misses = !fetchesPanels(problem) &&
                   product.lanes * depth * problem.elementBits / 8 > double(target.l2Bytes) / 2;
  return product;
}

/// The unit among the tiles of vectors, or both alone, as they are measured apart from those.
static void compareWithUnit(const MatrixProduct &product, int64_t times, bool pays,
                            ComparedSchedules &compared) {
  if (pays) {
    compared.restart();
    compared.add("vectors", product.onVectors() * double(times));
  }
  compared.add(unitFields.str(), product.onUnit() * double(times));
}

/// Blocks of 32 rows and lanes; the parts of the B panels, two bytes each, stay in L2.
static void chooseMatrixUnit(const ContractionProblem &problem, const TargetInfo &target,
                             ContractionSchedule &schedule, ComparedSchedules *compared) {
  constexpr int64_t blockLanes = 32, blockSteps = 32, percentOfParts = 40;
  constexpr int64_t shortestSplit = 3 * blockSteps;
  int64_t shortest = problem.matrixParts > 1 ? shortestSplit : blockSteps;
  bool takes = problem.matrixParts == 1 || (problem.matrixParts > 1 && target.splitsFloat32);
  if (!target.hasMatrixUnit || !takes)
    return;
  int64_t chunk = chooseChunk(problem, target, schedule, /*isLong=*/false);
  int64_t unitSteps = llvm::divideCeil(chunk, blockSteps),
          chunks = problem.reduced.empty() ? 1 : problem.reduced.back() / chunk;
  for (int64_t extent : llvm::ArrayRef(problem.reduced).drop_back())
    unitSteps *= extent;
  if (unitSteps * blockSteps < shortest)
    return;
  int64_t panelBytes = unitSteps * blockSteps * blockLanes * 2 * problem.matrixParts;
  int64_t total = problem.outerPanels * llvm::divideCeil(problem.laneCount, blockLanes);
  int64_t most = std::clamp<int64_t>(target.l2Bytes * percentOfParts / 100 / panelBytes, 1, total);
  int64_t panels = evenBlocks(total, most);
  MatrixProduct product =
      matrixProductOf(problem, target, double(unitSteps * blockSteps * chunks), panels, total);
  bool pays = product.paysOnUnit();
  if (compared)
    compareWithUnit(product, problem.batches * target.team(), pays, *compared);
  if (!pays)
    return;
  schedule.matrixUnit = true;
  schedule.rows = 1;
  schedule.groups = 2;
  schedule.chunk = chunk;
  schedule.panels = panels;
}

/// Chooses how strided B is brought in one panel ahead while row tiles use the current panel:
/// packed, or prefetched over `turnsOfPart` row tiles. `grid` has its split.
static void chooseNextPanel(const ContractionProblem &problem, const TargetInfo &target,
                            const ContractionGrid &grid, int64_t turnsOfPart, bool mayCopy,
                            ContractionSchedule &schedule) {
  // Measured on layers of 16 to 1024 tokens: packing B pays off with many rows, if B comes from
  // memory, or if a step of a panel is only a few cache lines.
  constexpr int64_t leastTurns = 22, leastOfCold = 4, longRun = 256;
  constexpr int64_t stepsPerFetch = ContractionSchedule::stepsPerFetch;
  bool isWhole = schedule.chunk % stepsPerFetch == 0 && schedule.segment % stepsPerFetch == 0;
  if (!isStrided(problem.vectorStrideBytes) || !isWhole || schedule.matrixUnit || schedule.strip ||
      schedule.paired || schedule.stepsAhead || grid.rows() == 1 ||
      problem.vectorBytes <= target.l2Bytes / 2)
    return;
  int64_t lanes = schedule.groups * schedule.width, turns = grid.turnsOfThread();
  bool isShortRun = lanes * problem.elementBits / 8 < longRun;
  int64_t least = problem.coldVectors || isShortRun ? leastOfCold : leastTurns;
  bool isOneLoop = grid.split == ContractionGrid::Rows || grid.split == ContractionGrid::Panels;
  bool panelsAreAlike = problem.laneCount % lanes == 0 && problem.lastLanes == problem.laneCount;
  if (mayCopy && isOneLoop && turns >= least && panelsAreAlike) {
    schedule.copiedSteps = llvm::divideCeil(stepsPerFetch, turns);
    schedule.panels = 1;
  } else {
    schedule.stridedPrefetch = llvm::divideCeil(stepsPerFetch, std::max<int64_t>(turnsOfPart, 1));
  }
}

/// Cache lines of the next panel to prefetch at a time, so that `turnsOfPart` row tiles prefetch
/// its next chunk; 0 if there is none, or it does not fit L2 beside the current one.
static int64_t linesPerFetch(const ContractionProblem &problem, const TargetInfo &target,
                             const ContractionSchedule &schedule, const ContractionGrid &grid,
                             int64_t turnsOfPart) {
  auto stepsOf = [](llvm::ArrayRef<int64_t> extents) {
    return std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>());
  };
  llvm::ArrayRef<int64_t> reduced = problem.reduced;
  int64_t steps = schedule.chunk * stepsOf(reduced.drop_front(schedule.outerChunks).drop_back());
  if (grid.panels() <= schedule.panels && steps == stepsOf(reduced))
    return 0;
  constexpr int64_t stepsPerFetch = ContractionSchedule::stepsPerFetch, percentOfNext = 30;
  int64_t stepBytes = problem.laneCount * problem.vectorElementBytes;
  if (steps * stepBytes > target.l2Bytes * percentOfNext / 100)
    return 0;
  int64_t lines = llvm::divideCeil(stepsPerFetch * stepBytes, lineBytes);
  return llvm::divideCeil(lines, std::max<int64_t>(turnsOfPart, 1));
}

/// Least pieces of a work chunk; 0: a thread's partition is one chunk, as packed panels are per
/// partition. `turnsOfStream`: row tiles that amortize reading B, or 0.
static int64_t chooseClaim(const ContractionProblem &problem, const ContractionSchedule &schedule,
                           const ContractionGrid &grid, int64_t turnsOfStream) {
  // Small enough that no thread waits long for a slower one at the end.
  constexpr int64_t enoughFlops = 2'000'000;
  bool sharesRows = grid.split == ContractionGrid::Rows || grid.split == ContractionGrid::Blocks;
  if (schedule.matrixUnit || schedule.copiedSteps || (schedule.paired && sharesRows))
    return 0;
  int64_t unit = 1;
  if (grid.split == ContractionGrid::Panels)
    unit = schedule.panels;
  else if (sharesRows && schedule.strip)
    unit = schedule.strip / schedule.rows;
  int64_t least = KernelFunction::piecesOf(grid.pieces(), problem.flops, enoughFlops);
  if (sharesRows)
    least = std::max(least, turnsOfStream);
  return llvm::alignTo(least, unit);
}

/// How the threads divide the tiles, and what they bring in ahead.
static void chooseDivision(const ContractionProblem &problem, const TargetInfo &target,
                           bool mayCopy, ContractionSchedule &schedule) {
  /// Rows of tiles that amortize reading B from L3 or memory.
  constexpr int64_t turnsOfStream = 8;
  auto grid =
      ContractionGrid::of(problem, schedule.rows, schedule.groups, schedule.width, target.team());
  if (schedule.matrixUnit)
    grid.rowPieces = llvm::divideCeil(grid.rowCount * grid.outerRows, AmxContraction::blockRows);
  chooseSplit(grid, problem, schedule, target.l2Bytes);
  schedule.split = grid.split;
  schedule.rowTiles = grid.rowTiles;
  if (!schedule.strip)
    schedule.rows = grid.tallest();
  // VNNI packing reads B only once, a block at a time: prefetch only if a block is one panel.
  bool readsPanels = !schedule.paired || schedule.panels == 1;
  int64_t parts = grid.split == ContractionGrid::Blocks ? target.team() : 1;
  bool streamsVectors = problem.vectorBytes / parts > target.l2Bytes / 2;
  // Rows of tiles that read a panel within one work chunk.
  bool isShort = grid.split == ContractionGrid::Rows && streamsVectors;
  int64_t turnsOfPart =
      isShort ? std::min(turnsOfStream, grid.turnsOfThread()) : grid.turnsOfThread();
  if (fetchesPanels(problem) && !schedule.matrixUnit && !schedule.strip && readsPanels &&
      schedule.chunk % ContractionSchedule::stepsPerFetch == 0)
    schedule.panelPrefetch = linesPerFetch(problem, target, schedule, grid, turnsOfPart);
  chooseNextPanel(problem, target, grid, turnsOfPart, mayCopy, schedule);
  schedule.claim = chooseClaim(problem, schedule, grid, streamsVectors ? turnsOfStream : 0);
}

/// On processors that execute 512-bit vectors as two halves, a tile of one half-filled vector takes
/// half the time at 256 bits, and on none does it take longer.
static int64_t chooseNarrowWidth(const ContractionProblem &problem, const TargetInfo &target,
                                 const ContractionSchedule &schedule) {
  constexpr int64_t longVector = 64;
  bool isPlain = !schedule.strip && !schedule.paired && !schedule.matrixUnit && !problem.lanewise;
  return isPlain && target.vectorBytes == longVector ? schedule.width / 2 : schedule.width;
}

/// What the tile became, whether the costs have chosen it, a rule or the user, or the threads share
/// rows evenly with it.
static void takeTile(const ContractionTiles &tiles, const ContractionSchedule &schedule,
                     ComparedSchedules &compared) {
  if (schedule.matrixUnit) {
    compared.take(unitFields.str());
    return;
  }
  std::string fields = ContractionTiles::fields(schedule.rows, schedule.groups);
  if (!schedule.stepsAhead)
    compared.add(fields, tiles.cycles(schedule.rows, schedule.groups));
  compared.take(std::move(fields));
}

llvm::Expected<ContractionSchedule> weft::chooseContraction(const ContractionProblem &problem,
                                                            const TargetInfo &target,
                                                            const ScheduleOverride &given,
                                                            ComparedSchedules *compared) {
  ContractionSchedule schedule;
  schedule.width = target.lanes(problem.elementBits);
  ContractionTiles tiles(problem, target, schedule.width);
  tiles.choose(schedule, compared);
  if (given.empty())
    chooseMatrixUnit(problem, target, schedule, compared);
  schedule.paired = formsPairs(problem, target) && !schedule.matrixUnit;
  if (!schedule.matrixUnit && !schedule.paired)
    chooseStream(problem, target, schedule, compared);
  if (!schedule.matrixUnit && !schedule.stepsAhead)
    chooseStrip(problem, target, schedule);
  schedule.rows = given.rows.value_or(schedule.rows);
  schedule.groups = given.groups.value_or(schedule.groups);
  bool isLong = hasLongChunks(problem, target, schedule);
  if (!schedule.matrixUnit)
    schedule.chunk = given.chunk.value_or(chooseChunk(problem, target, schedule, isLong));
  if (schedule.strip)
    schedule.stripSteps = chooseStripSteps(problem, schedule);
  schedule.unroll = chooseUnroll(problem, schedule);
  schedule.outerChunks = dividesWindow(problem, target, schedule);
  chooseSums(problem, schedule);
  if (!schedule.matrixUnit)
    schedule.panels = given.panels.value_or(choosePanels(problem, target, schedule, isLong));

  // A weight (A) larger than half of L2 comes from memory row by row.
  schedule.prefetch = !schedule.matrixUnit && problem.scalarsContiguous && problem.rowCount > 1 &&
                      schedule.chunk % ContractionSchedule::stepsPerFetch == 0 &&
                      problem.scalarBytes > target.l2Bytes / 2;
  schedule.tileEpilogue = problem.transcendental;
  schedule.narrowWidth = chooseNarrowWidth(problem, target, schedule);
  if (!given.empty())
    if (llvm::Error error = schedule.verifyTile(problem, target))
      return error;
  chooseDivision(problem, target, /*mayCopy=*/given.empty(), schedule);
  if (compared)
    takeTile(tiles, schedule, *compared);
  return schedule;
}
