// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace weft;

template <typename... Values>
static llvm::Error wrong(const char *format, const Values &...values) {
  return llvm::createStringError("schedule: " + llvm::formatv(format, values...).str());
}

int64_t ContractionSchedule::panelsOf(const ContractionProblem &problem) const {
  return problem.outerPanels * llvm::divideCeil(problem.laneCount, groups * width);
}

/// What a path through the emitter needs of the machine and of the operands.
static llvm::Error verifyPaths(const ContractionSchedule &schedule,
                               const ContractionProblem &problem, const TargetInfo &target) {
  if (schedule.matrixUnit && (problem.matrixParts == 0 || !target.hasMatrixUnit))
    return wrong("expected matrix_unit 0, as the machine or the contraction does not suit it");
  if (schedule.paired && !(target.hasBFloat16 && (problem.pairs || problem.stridedPairs)))
    return wrong("expected paired 0, as the machine or the contraction does not suit it");
  int64_t narrow = schedule.narrowWidth, width = schedule.width;
  if (narrow != width && 2 * narrow != width)
    return wrong("expected narrow_lanes of {0} or half of it, found {1}", width, narrow);
  if (narrow != width &&
      (schedule.strip || schedule.paired || schedule.matrixUnit || problem.lanewise))
    return wrong("expected narrow_lanes {0}, as only broadcasts of rows in place have fewer, found "
                 "{1}",
                 width, narrow);
  if (schedule.panelPrefetch && problem.packedBytes == 0)
    return wrong("expected panel_prefetch 0 of panels that are not packed, found {0}",
                 schedule.panelPrefetch);
  if ((schedule.copiedSteps || schedule.stridedPrefetch || schedule.stepsAhead) &&
      problem.vectorStrideBytes == 0)
    return wrong(
        "expected copied_steps, strided_prefetch and steps_ahead 0 without strided panels");
  if (schedule.strip && problem.scalarStrideBytes == 0 && !problem.stridedPairs)
    return wrong("expected strip 0 without strided rows, found {0}", schedule.strip);
  return llvm::Error::success();
}

/// Whether the tiles cover all rows, each of `rows` at the most.
static llvm::Error verifyRows(const ContractionSchedule &schedule,
                              const ContractionProblem &problem) {
  int64_t rows = schedule.rows, tiles = schedule.rowTiles;
  bool isCovered = schedule.strip ? rows * tiles >= problem.rowCount
                                  : llvm::divideCeil(problem.rowCount, tiles) == uint64_t(rows);
  if (!isCovered)
    return wrong("expected {0} rows in row_tiles of rows, found {1} of {2}", problem.rowCount,
                 tiles, rows);
  return llvm::Error::success();
}

llvm::Error ContractionSchedule::verify(const ContractionProblem &problem,
                                        const TargetInfo &target) const {
  if (llvm::Error error = verifyTile(problem, target))
    return error;
  if (llvm::Error error = verifyPaths(*this, problem, target))
    return error;
  return verifyRows(*this, problem);
}

llvm::Error ContractionSchedule::verifyTile(const ContractionProblem &problem,
                                            const TargetInfo &target) const {
  if (width != target.lanes(problem.elementBits))
    return wrong("expected lanes of {0}, found {1}", target.lanes(problem.elementBits), width);
  // Accumulators, one row of B vectors, one broadcast.
  int64_t registers = rows * groups + groups + 1;
  if (registers > target.vectorRegisters)
    return wrong("expected rows * groups + groups + 1 of at most {0} registers, found {1}",
                 target.vectorRegisters, registers);
  if (!strip && rows > std::max<int64_t>(problem.rowCount, 1))
    return wrong("expected rows of at most {0}, found {1}", problem.rowCount, rows);
  if (strip % rows != 0)
    return wrong("expected rows to divide the strip of {0}, found {1}", strip, rows);
  if (strip && (stripSteps == 0 || chunk % stripSteps != 0))
    return wrong("expected strip_steps to divide the chunk of {0}, found {1}", chunk, stripSteps);
  int64_t vectors = llvm::divideCeil(problem.laneCount, width);
  if (!matrixUnit && groups > std::max<int64_t>(vectors, 1))
    return wrong("expected groups of at most {0}, found {1}", vectors, groups);
  int64_t innermost = problem.reduced.empty() ? 1 : problem.reduced.back();
  if (chunk != innermost && (chunk == 0 || innermost % chunk != 0))
    return wrong("expected chunk to divide {0}, found {1}", innermost, chunk);
  if (chunk < innermost && (problem.reduced.size() != 1 || !problem.canSpill))
    return wrong("expected chunk {0}, as partial sums have nowhere to wait, found {1}", innermost,
                 chunk);
  int64_t mostPanels = std::max<int64_t>(1, panelsOf(problem));
  if (!matrixUnit && panels > mostPanels)
    return wrong("expected panels of at most {0}, found {1}", mostPanels, panels);
  return llvm::Error::success();
}
