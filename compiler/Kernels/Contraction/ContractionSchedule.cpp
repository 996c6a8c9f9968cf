// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Contraction/ContractionGrid.h"
#include "compiler/Kernels/Emission/BlockedSummation.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace weft;

/// Rows and groups fill the registers: accumulators, the vectors, one broadcast.
static void chooseTile(const ContractionProblem &problem, const TargetInfo &target,
                       ContractionSchedule &schedule) {
  // Rows a multiple of 4 KiB apart fall into one set of the first-level cache, of which each way
  // holds as much. Vectors need some of the ways.
  constexpr int64_t aliasBytes = 4096, mostRows = 14;
  int64_t mostAliased = std::clamp<int64_t>(target.l1Bytes / aliasBytes - 1, 1, 8);
  bool aliased = problem.rowCount > 1 && problem.rowStrideBytes % aliasBytes == 0;
  // What of the set is driven out is loaded from the second level.
  double loadCost = aliased ? 0.1 : 0.01;
  int64_t needed = llvm::divideCeil(problem.laneCount, schedule.width);
  double bestCost = 1e30;
  for (int64_t groups = 1; groups <= std::min<int64_t>(needed, 4); ++groups) {
    int64_t most = (target.vectorRegisters - 1 - groups) / groups;
    most = std::min({most, aliased ? mostAliased : mostRows, problem.rowCount});
    double lanesUsed = double(needed) / (llvm::divideCeil(needed, groups) * groups);
    for (int64_t rows = most; rows >= std::max<int64_t>(1, most / 2); --rows) {
      auto grid = ContractionGrid::of(problem, rows, groups, schedule.width, target.team());
      double height = double(grid.rowCount) / double(grid.rowTiles);
      // Time for one step of k, per useful multiply-add: as many FMAs as loads at a time.
      double fmas = height * double(groups);
      double loads = problem.lanewise ? fmas + groups : height + double(groups);
      double latency = fmas < 8 ? 8.0 / fmas : 1.0;
      // Each tile fills and empties its registers; tiles of two heights are twice the code.
      double ofTile = 0.15 * double(most) / height;
      double uneven = grid.isUneven() ? std::min(0.005, 0.5 * height / double(grid.rowCount)) : 0;
      double cost = std::max(fmas, loads) * latency / (fmas * lanesUsed) + loadCost * loads / fmas +
                    ofTile + uneven;
      if (cost < bestCost) {
        bestCost = cost;
        schedule.groups = groups;
        schedule.rows = rows;
      }
    }
  }
}

/// Weights that lie side by side along the lanes, of which few rows wait: the second-level caches
/// do not hold them, and the next step of the sum lies where processors do not look ahead. A tile
/// takes all rows and as many vectors as registers allow, so that what it reads of a step is long,
/// and all threads take about as many panels.
static void chooseStream(const ContractionProblem &problem, const TargetInfo &target,
                         ContractionSchedule &schedule) {
  constexpr int64_t stepsAhead = 8, mostRows = 8;
  if (!problem.vectorsStrided || problem.outerRows > 1 || problem.rowCount > mostRows ||
      problem.vectorBytes <= target.l2Bytes)
    return;
  schedule.rows = problem.rowCount;
  schedule.stepsAhead = stepsAhead;
  int64_t vectors = llvm::divideCeil(problem.laneCount, schedule.width);
  int64_t most = std::min((target.vectorRegisters - 1) / (problem.rowCount + 1), vectors);
  double bestCost = std::numeric_limits<double>::max();
  for (int64_t groups = most; groups >= (most + 1) / 2; --groups) {
    int64_t panels = llvm::alignTo(llvm::divideCeil(vectors, groups), target.team());
    double cost = double(panels) * (double(groups) + 0.5);
    if (cost < bestCost) {
      bestCost = cost;
      schedule.groups = groups;
    }
  }
}

/// Scalars that lie side by side along the rows, and far apart along the sum, share lines
/// with the rows beside them, on a page of their own for each step: whole lines are copied
/// into a strip, which a few tiles then read from the first-level cache. Three lines hold whole
/// tiles of six rows, beside which most vectors are in registers. Pairs of steps have to lie side
/// by side.
static void chooseStrip(const ContractionProblem &problem, const TargetInfo &target,
                        ContractionSchedule &schedule) {
  constexpr int64_t lineBytes = 64, wideLines = 3;
  bool pairs = problem.stridedPairs && target.hasBFloat16, many = target.vectorRegisters >= 32;
  int64_t line = lineBytes / (pairs ? 2 : problem.elementBits / 8);
  if (!pairs && (!problem.scalarsStrided || !problem.canSpill || problem.rowCount < line))
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

/// The part of at most `most` steps that divides `extent`, a multiple of `unit`, and of these the
/// one nearest to `best`, as a ratio; nothing where parts would be so short that what waits between
/// them costs more than the caches give.
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

/// As many steps as take the room of `steps` of float32, of which a tile's rows stay in the
/// first-level cache and its vectors in the second.
static int64_t stepsInRoomOf(int64_t steps, const ContractionProblem &problem) {
  return steps * 32 / std::max(32u, problem.elementBits);
}

/// The steps of a panel that stays in the second-level cache beside others.
static int64_t stepsOfCache(const ContractionProblem &problem, const TargetInfo &target) {
  constexpr int64_t ofLargeCache = 768, largeCache = 1 << 20;
  return stepsInRoomOf(target.l2Bytes < largeCache ? ofLargeCache / 2 : ofLargeCache, problem);
}

/// Whether chunks are twice as long where the second-level cache would hold two panels together.
/// If there are many, the third level has the rows anyway, and half as many partial sums pass by.
static bool hasLongChunks(const ContractionProblem &problem, const TargetInfo &target,
                          const ContractionSchedule &schedule) {
  constexpr int64_t manyPanels = 8;
  int64_t stepBytes = schedule.groups * schedule.width * problem.elementBits / 8;
  int64_t fitting = target.l2Bytes / 2 / (stepsOfCache(problem, target) * stepBytes);
  return fitting == 2 && problem.panelsFetched && problem.reduced.size() == 1 && !schedule.strip &&
         schedule.panelsOf(problem) >= manyPanels;
}

/// The chunk of a long reduction whose panels stay in the second-level cache, and the next chunk's
/// beside them, unless it `isLong`. Strips take few lines of many pages for each chunk.
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

/// The longest chain of sums. Beside bf16's own errors those of one twice as long vanish.
static int64_t mostSummands(const ContractionSchedule &schedule) {
  return schedule.paired ? 2 * longestChain : longestChain;
}

/// The part of a chunk whose strip stays in the first-level cache beside a panel.
static int64_t chooseStripSteps(const ContractionProblem &problem,
                                const ContractionSchedule &schedule) {
  int64_t most = mostSummands(schedule), unit = schedule.paired ? 2 : 1;
  if (!problem.canSpill)
    return schedule.chunk;
  return choosePart(schedule.chunk, most, /*best=*/most, unit).value_or(schedule.chunk);
}

/// A channel's window is unrolled whole, as the loop over it would cost as much as its steps.
static int64_t chooseUnroll(const ContractionProblem &problem,
                            const ContractionSchedule &schedule) {
  int64_t steps = schedule.tileSteps();
  constexpr int64_t longestWindow = 8;
  if (schedule.paired)
    return steps % 4 == 0 ? 4 : 2;
  if (problem.lanewise && steps <= longestWindow)
    return steps;
  // Between fetches lie whole turns.
  for (int64_t unroll : {4, 3, 2})
    if (steps % unroll == 0 &&
        (!schedule.strip || ContractionSchedule::stepsPerFetch % unroll == 0))
      return unroll;
  return 1;
}

/// The size of as few blocks as there may be of at most `most`, that are about alike.
static int64_t evenBlocks(int64_t total, int64_t most) {
  return llvm::divideCeil(total, llvm::divideCeil(total, most));
}

/// Blocks of about one size, of which the last may be shorter, and how they go to the totals.
static void chooseSums(const ContractionProblem &problem, ContractionSchedule &schedule) {
  constexpr int64_t least = 64, line = 16, mostTurns = 8;
  int64_t most = mostSummands(schedule), steps = schedule.tileSteps();
  // A block is whole steps of the unrolled loop, and whole lines where the chunk is.
  int64_t unit = steps % line == 0 ? line : schedule.unroll;
  int64_t block = steps > most ? llvm::alignTo(evenBlocks(steps, most), unit) : steps;
  llvm::ArrayRef<int64_t> reduced = problem.reduced;
  schedule.blockDims = reduced.empty() ? 0 : reduced.size() - 1;
  int64_t inside = 1; // of the outer dims that a block goes through
  while (schedule.blockDims > 0 && block * inside < least)
    inside *= reduced[--schedule.blockDims];

  schedule.segment = block;
  int64_t passes = 1; // of a tile through its innermost dim
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
  // Each share is put by once at least.
  int64_t segments = passes * llvm::divideCeil(steps, schedule.segment);
  schedule.turns = std::min(most / (schedule.segment * inside), segments);
  schedule.turns = std::max<int64_t>(schedule.turns, 1);
}

/// Whether a window's rows are chunks of their own: its panel and the next, which is fetched
/// meanwhile, do not both fit the second-level cache.
static bool dividesWindow(const ContractionProblem &problem, const TargetInfo &target,
                          const ContractionSchedule &schedule) {
  constexpr int64_t longestWindow = 8;
  int64_t bytes = schedule.groups * schedule.width * problem.elementBits / 8;
  for (int64_t extent : problem.reduced)
    bytes *= extent;
  return problem.panelsFetched && !schedule.matrixUnit && !schedule.paired && problem.canSpill &&
         problem.reduced.size() > 1 && problem.reduced.front() <= longestWindow &&
         bytes > target.l2Bytes / 5;
}

/// Panels of vectors that stay in the second-level cache while the rows go by. Where the
/// rows stay there as well, one: the panel comes from memory once either way. Strips are copied
/// for each block. A long chunk has a block for itself.
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
  // Two may take more than half, as the rows that pass by are then read half as often.
  if (fitting <= 1 && !isLong && 2 * panelBytes <= target.l2Bytes * 4 / 5)
    fitting = 2;
  // Each block copies all strips again, which takes longer than the second-level cache loses where
  // the threads share no cache behind it; not with tiles of two registers. Still the threads have
  // a block each.
  if (schedule.strip && schedule.groups > 2 && total > fitting)
    fitting = std::min<int64_t>(target.l2Bytes * 4 / 5 / panelBytes,
                                llvm::divideCeil(total, target.team()));
  return evenBlocks(std::max<int64_t>(total, 1), std::max<int64_t>(fitting, 1));
}

/// Whether the matrix unit is faster for the team, by cycles of one core as measured. It
/// does a multiply-add of float32 in six, but operands are split first: the vectors ahead of
/// their first use, by each thread unless they share them out, the rows besides, if there are
/// panels enough to be busy with.
static bool paysOnMatrixUnit(const ContractionProblem &problem, const TargetInfo &target,
                             double depth, int64_t panels, int64_t total) {
  constexpr double vectorsCycles = 0.037, missCycles = 0.3, margin = 0.95;
  auto threads = double(target.team());
  bool splits = problem.matrixParts > 1, sharesPanels = total >= target.team() * panels;
  double unitCycles = splits ? 0.0205 : 0.005, splitCycles = splits ? 0.6 : 0.2;
  double idleCycles = splits ? 0.02 : 0.005;
  int64_t rowCount = problem.rowCount * problem.outerRows;
  double rows = double(llvm::alignTo(rowCount, 32));
  double lanes = double(problem.outerPanels * llvm::alignTo(problem.laneCount, 32));
  double useful = double(rowCount) * double(problem.outerPanels * problem.laneCount);
  for (int64_t extent : problem.reduced)
    useful *= double(extent);
  double idle = (1 - std::min(1.0, double(panels) / 4)) * idleCycles / double(panels);
  double unit = rows * lanes * depth * (unitCycles + idle) / threads +
                lanes * depth * splitCycles / (sharesPanels ? threads : 1);
  // The vector units wait for panels that come from memory, the splitting hides it.
  bool misses = !problem.panelsFetched &&
                lanes * depth * problem.elementBits / 8 > double(target.l2Bytes) / 2;
  double vectors = vectorsCycles * useful + (misses ? missCycles * lanes * depth : 0);
  return unit < margin * vectors / threads;
}

/// Blocks of 32 rows and lanes; the vectors' parts, six bytes of an element, stay in the
/// second-level cache.
static void chooseMatrixUnit(const ContractionProblem &problem, const TargetInfo &target,
                             ContractionSchedule &schedule) {
  constexpr int64_t blockLanes = 32, blockSteps = 32;
  int64_t shortest = problem.matrixParts > 1 ? 96 : 32;
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
  int64_t most = std::clamp<int64_t>(target.l2Bytes * 2 / 5 / panelBytes, 1, total);
  int64_t panels = evenBlocks(total, most);
  if (!paysOnMatrixUnit(problem, target, double(unitSteps * blockSteps * chunks), panels, total))
    return;
  schedule.matrixUnit = true;
  schedule.rows = 1;
  schedule.groups = 2;
  schedule.chunk = chunk;
  schedule.panels = panels;
}

int64_t ContractionSchedule::panelsOf(const ContractionProblem &problem) const {
  return problem.outerPanels * llvm::divideCeil(problem.laneCount, groups * width);
}

void ContractionSchedule::chooseNextPanel(const ContractionProblem &problem,
                                          const TargetInfo &target, const ContractionGrid &grid,
                                          int64_t turnsOfPart, bool mayCopy) {
  // Measured on layers of 16 to 1024 tokens: rows are worth a copy if they are many, if vectors
  // come from memory, or if what a step reads of a panel is a line or two.
  constexpr int64_t leastTurns = 22, leastOfCold = 4, longRun = 256;
  bool isWhole = chunk % stepsPerFetch == 0 && segment % stepsPerFetch == 0;
  if (!problem.vectorsStrided || !isWhole || matrixUnit || strip || paired || stepsAhead ||
      grid.rows() == 1 || problem.vectorBytes <= target.l2Bytes / 2)
    return;
  int64_t lanes = groups * width, turns = grid.turnsOfThread();
  bool isShortRun = lanes * problem.elementBits / 8 < longRun;
  int64_t least = problem.coldVectors || isShortRun ? leastOfCold : leastTurns;
  bool isOneLoop = grid.split == ContractionGrid::Rows || grid.split == ContractionGrid::Panels;
  bool panelsAreAlike = problem.laneCount % lanes == 0 && problem.lastLanes == problem.laneCount;
  if (mayCopy && isOneLoop && turns >= least && panelsAreAlike) {
    copiedSteps = llvm::divideCeil(stepsPerFetch, turns);
    panels = 1;
  } else {
    stridedPrefetch = llvm::divideCeil(stepsPerFetch, std::max<int64_t>(turnsOfPart, 1));
  }
}

ContractionSchedule ContractionSchedule::choose(const ContractionProblem &problem,
                                                const TargetInfo &target,
                                                const ScheduleOverride &given) {
  ContractionSchedule schedule;
  schedule.width = target.lanes(problem.elementBits);
  chooseTile(problem, target, schedule);
  if (given.empty())
    chooseMatrixUnit(problem, target, schedule);
  schedule.paired =
      (problem.pairs || problem.stridedPairs) && target.hasBFloat16 && !schedule.matrixUnit;
  if (!schedule.matrixUnit && !schedule.paired)
    chooseStream(problem, target, schedule);
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

  // A weight larger than the second-level cache comes from memory row by row.
  schedule.prefetch = !schedule.matrixUnit && problem.scalarsContiguous && problem.rowCount > 1 &&
                      schedule.chunk % stepsPerFetch == 0 &&
                      problem.scalarBytes > target.l2Bytes / 2;
  schedule.tileEpilogue = problem.transcendental;
  return schedule;
}
