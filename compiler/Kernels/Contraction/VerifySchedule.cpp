// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace weft;

template <typename... Values>
static llvm::Error wrong(const char *format, const Values &...values) {
  return llvm::createStringError("schedule: " + llvm::formatv(format, values...).str());
}

llvm::Error ContractionSchedule::verify(const ContractionProblem &problem,
                                        const TargetInfo &target) const {
  // Accumulators, one row of B vectors, one broadcast.
  int64_t registers = rows * groups + groups + 1;
  if (registers > target.vectorRegisters)
    return wrong("expected rows * groups + groups + 1 of at most {0} registers, found {1}",
                 target.vectorRegisters, registers);
  if (rows > problem.rowCount)
    return wrong("expected rows of at most {0}, found {1}", problem.rowCount, rows);
  if (strip % rows != 0)
    return wrong("expected rows to divide the strip of {0}, found {1}", strip, rows);
  int64_t vectors = llvm::divideCeil(problem.laneCount, width);
  if (groups > vectors)
    return wrong("expected groups of at most {0}, found {1}", vectors, groups);
  int64_t innermost = problem.reduced.empty() ? 1 : problem.reduced.back();
  if (innermost % chunk != 0)
    return wrong("expected chunk to divide {0}, found {1}", innermost, chunk);
  if (chunk < innermost && (problem.reduced.size() != 1 || !problem.canSpill))
    return wrong("expected chunk {0}, as partial sums have nowhere to wait, found {1}", innermost,
                 chunk);
  int64_t mostPanels = std::max<int64_t>(1, panelsOf(problem));
  if (panels > mostPanels)
    return wrong("expected panels of at most {0}, found {1}", mostPanels, panels);
  return llvm::Error::success();
}
