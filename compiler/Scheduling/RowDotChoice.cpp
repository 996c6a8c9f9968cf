// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Scheduling/DotChoice.h"
#include "compiler/Target/CostModel.h"
#include "llvm/Support/MathExtras.h"

using namespace weft;

bool weft::fetchesColumns(const DotProblem &problem, const TargetInfo &target) {
  return problem.columns * problem.depth * (problem.columnBits / 8) > target.l2Bytes / 2;
}

/// Chooses the register tile of least cost. The remaining rows make a smaller tile.
static void chooseTile(const DotProblem &problem, const TargetInfo &target,
                       RowDotSchedule &schedule, ComparedSchedules *compared) {
  double steps = double(problem.outer * llvm::divideCeil(problem.depth, schedule.width));
  double bestCost = std::numeric_limits<double>::max();
  for (int64_t wide = std::min<int64_t>(8, problem.columns); wide >= 1; --wide) {
    // Registers hold the accumulators, a vector of each row and one of a column.
    int64_t tall = (target.vectorRegisters - 1) / (wide + 1);
    tall = std::min(tall, problem.rows);
    int64_t rest = problem.rows % tall;
    int64_t whole = problem.rows / tall;
    double cost = double(whole) * DotTile{tall, wide}.ofStep();
    cost += rest ? DotTile{rest, wide}.ofStep() : 0;
    cost *= double(llvm::divideCeil(problem.columns, wide));
    if (compared)
      compared->add(fieldsOf({{"rows", tall}, {"columns", wide}}), cyclesOf(cost * steps));
    if (cost < bestCost) {
      bestCost = cost;
      schedule.rows = tall;
      schedule.columns = wide;
    }
  }
}

/// KC: the steps for which a block of columns stays in half of L1 for all rows; everything if the
/// rows fit one tile.
static int64_t chooseChunk(const DotProblem &problem, const TargetInfo &target,
                           const RowDotSchedule &schedule) {
  int64_t depth = problem.depth;
  if (!problem.hasRows || problem.rows <= schedule.rows || !problem.oneReduced)
    return depth;
  int64_t bytes = depth * schedule.columns * (problem.columnBits / 8);
  int64_t parts = llvm::divideCeil(bytes, target.l1Bytes / 2);
  return std::min<int64_t>(depth,
                           llvm::alignTo(llvm::divideCeil(depth, parts), schedule.stepWidth()));
}

/// Prefetch distance of a single tile along its columns; 0 if they are cached. Hardware prefetchers
/// keep too few lines in flight to saturate memory bandwidth.
static int64_t chooseStepsAhead(const DotProblem &problem, const RowDotSchedule &schedule) {
  constexpr int64_t bytesAhead = 1536;
  bool isOneTile = !problem.hasRows || problem.rows <= schedule.rows;
  if (!isOneTile || !problem.oneReduced || !problem.coldColumns)
    return 0;
  return std::min<int64_t>(bytesAhead * 8 / problem.columnBits, problem.depth);
}

RowDotSchedule weft::chooseRowDot(const DotProblem &problem, const TargetInfo &target,
                                  ComparedSchedules *compared) {
  RowDotSchedule schedule;
  schedule.width = target.lanes(problem.elementBits);
  schedule.paired = target.hasBFloat16 && problem.halves;
  chooseTile(problem, target, schedule, compared);
  if (compared)
    compared->take(fieldsOf({{"rows", schedule.rows}, {"columns", schedule.columns}}));
  schedule.chunk = chooseChunk(problem, target, schedule);
  constexpr int64_t mostChains = 8;
  int64_t sums = schedule.rows * schedule.columns;
  int64_t registers = target.vectorRegisters - schedule.rows - 1;
  int64_t vectors = schedule.chunk / schedule.stepWidth();
  schedule.chains = std::max<int64_t>(1, std::min({mostChains, registers / sums, vectors}));
  constexpr int64_t enoughFlops = 200'000; // with one row, 1 or 2 bytes of weights each
  int64_t pieces = problem.outer * int64_t(llvm::divideCeil(problem.columns, schedule.columns));
  schedule.claim = KernelFunction::piecesOf(pieces, problem.flops, enoughFlops);
  // With several tiles, the first would stall on their columns.
  schedule.prefetch = problem.hasRows && problem.rows > schedule.rows && problem.oneReduced &&
                      fetchesColumns(problem, target);
  schedule.stepsAhead = chooseStepsAhead(problem, schedule);
  return schedule;
}
