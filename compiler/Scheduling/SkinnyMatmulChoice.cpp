// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/BlockedSummation.h"
#include "compiler/Scheduling/DotChoice.h"
#include "compiler/Target/CostModel.h"
#include "llvm/Support/MathExtras.h"

using namespace weft;

/// Columns computed by all threads, with equally many blocks each, including those computed twice.
static int64_t computedColumns(int64_t columns, int64_t block, int64_t threads) {
  return llvm::alignTo(llvm::divideCeil(columns, block), threads) * block;
}

static double costOf(const SkinnyMatmulSchedule &schedule, const DotProblem &problem,
                     const TargetInfo &target) {
  int64_t groups = schedule.groupsOf(problem.rows);
  bool lastIsAlone = schedule.lastIsAlone(problem.rows);
  int64_t whole = groups / schedule.groups(), rest = groups % schedule.groups();
  bool rowsInL1 = problem.rows * problem.depth * problem.elementBits / 8 <= target.l1Bytes / 2;
  auto tileCost = [&](int64_t groups, double last) {
    return SegmentedTile{groups, last, schedule.columns, rowsInL1}.ofStep();
  };
  double step = double(whole) * tileCost(schedule.groups(), 0);
  double last = lastIsAlone ? double(schedule.segment) / double(schedule.width) : 0;
  if (rest || lastIsAlone)
    step += tileCost(rest, last);
  double steps = double(llvm::divideCeil(problem.depth, schedule.segment)) * step;
  double sums = double(llvm::divideCeil(problem.depth, schedule.chunk) * (groups + lastIsAlone));
  int64_t strips =
      computedColumns(problem.columns, schedule.block, target.team()) / schedule.columns;
  double ofSums =
      SegmentedTile::ofSums(schedule.columns, schedule.segment, schedule.rowsOfVector());
  return (steps + sums * ofSums) * double(strips);
}

/// The block size for which the fewest columns are computed; the largest of these.
static int64_t chooseBlock(int64_t columns, int64_t ofTile, int64_t threads) {
  constexpr int64_t fewest = 24, most = 64;
  int64_t best = 0, leastWork = 0;
  for (int64_t block = most / ofTile * ofTile; block > 0; block -= ofTile) {
    int64_t work = computedColumns(columns, block, threads);
    if (block <= columns && (best == 0 || (block >= fewest && work < leastWork))) {
      best = block;
      leastWork = work;
    }
  }
  return best;
}

/// Each lane of a segment is a chain of additions of its own. If several tiles read the columns,
/// these have to stay in half of L1.
static int64_t longestChunk(const SkinnyMatmulSchedule &schedule, const DotProblem &problem,
                            const TargetInfo &target) {
  int64_t steps = 2 * longestChain * schedule.segment;
  if (problem.rows <= schedule.rows)
    return steps;
  return std::min<int64_t>(steps,
                           target.l1Bytes / 2 / (schedule.columns * problem.elementBits / 8));
}

static std::string fieldsOfTile(const SkinnyMatmulSchedule &schedule) {
  return fieldsOf(
      {{"rows", schedule.rows}, {"columns", schedule.columns}, {"segment", schedule.segment}});
}

std::optional<SkinnyMatmulSchedule> weft::chooseSkinnyMatmul(const DotProblem &problem,
                                                             const TargetInfo &target,
                                                             ComparedSchedules *compared) {
  // With fewer rows it is memory-bound, and row dots read memory in longer runs.
  constexpr int64_t fewestRows = 10, fewestColumns = 16;
  if (problem.rows < fewestRows || problem.columns < fewestColumns)
    return std::nullopt;
  // Measured on 17 and 33 rows: vectors of one row each cost more than the model says.
  constexpr double ofWholeVectors = 1.05;
  SkinnyMatmulSchedule best;
  double bestCost = 0;
  int64_t width = target.lanes(problem.elementBits);
  int64_t mostColumns = std::min<int64_t>({width, 12, problem.columns});
  for (int64_t segment = width; segment > 1; segment /= 2)
    for (int64_t columns = mostColumns; columns > 0; --columns) {
      SkinnyMatmulSchedule tried{width, segment};
      tried.columns = columns;
      // Registers hold the accumulators, the row vectors and one of a column.
      int64_t tall = (target.vectorRegisters - 1) / (columns + 1);
      int64_t vectors = llvm::divideCeil(problem.rows, tried.rowsOfVector());
      tried.rows = std::min(tall, vectors) * tried.rowsOfVector();
      tried.block = chooseBlock(problem.columns, columns, target.team());
      int64_t longest = longestChunk(tried, problem, target);
      int64_t parts = llvm::divideCeil(problem.depth, std::max(longest, width));
      tried.chunk = llvm::alignTo(llvm::divideCeil(problem.depth, parts), width);
      double cost = costOf(tried, problem, target);
      if (segment == width)
        cost *= ofWholeVectors;
      if (compared)
        compared->add(fieldsOfTile(tried), cyclesOf(cost * double(problem.outer)));
      if (bestCost == 0 || cost < bestCost) {
        best = tried;
        bestCost = cost;
      }
    }
  int64_t bytes =
      best.tilesOf(problem.rows) * best.tilePitch(problem.depth) * problem.elementBits / 8;
  if (best.segment >= best.width || bytes > target.l2Bytes / 2)
    return std::nullopt;
  constexpr int64_t enoughFlops = 200'000;
  int64_t blocks = llvm::divideCeil(problem.columns, best.block);
  best.claim = KernelFunction::piecesOf(blocks, problem.flops, enoughFlops);
  best.prefetch = fetchesColumns(problem, target);
  if (compared)
    compared->take(fieldsOfTile(best));
  return best;
}
