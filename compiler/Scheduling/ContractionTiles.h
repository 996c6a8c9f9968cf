// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The register tiles that a contraction may have, with their predicted times.
#ifndef WEFT_COMPILER_SCHEDULING_CONTRACTIONTILES_H
#define WEFT_COMPILER_SCHEDULING_CONTRACTIONTILES_H

#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Scheduling/ComparedSchedules.h"

namespace weft {

class ContractionTiles {
public:
  /// `width`: lanes of a vector. The references are kept.
  ContractionTiles(const ContractionProblem &problem, const TargetInfo &target, int64_t width)
      : problem(problem), target(target), width(width) {}

  /// Sets rows and groups of `schedule` to the tile of least cost. `compared`, unless null, gets
  /// all that are tried.
  void choose(ContractionSchedule &schedule, ComparedSchedules *compared) const;

  /// Of the whole contraction on one core.
  double cycles(int64_t rows, int64_t groups) const;

  /// A tile as remarks name it.
  static std::string fields(int64_t rows, int64_t groups) {
    return fieldsOf({{"rows", rows}, {"groups", groups}});
  }

private:
  bool isAliased() const;
  int64_t mostRows(int64_t groups) const;
  double ofMultiplyAdd(int64_t rows, int64_t groups) const;

  const ContractionProblem &problem;
  const TargetInfo &target;
  int64_t width;
};

/// Steps of the whole reduction.
double reducedSteps(const ContractionProblem &problem);

} // namespace weft

#endif
