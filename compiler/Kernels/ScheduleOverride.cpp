// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/ScheduleOverride.h"
#include "compiler/Kernels/ContractionSchedule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace weft;

template <typename... Values>
static llvm::Error wrong(const char *format, const Values &...values) {
  return llvm::createStringError("schedule: " + llvm::formatv(format, values...).str());
}

llvm::Expected<ScheduleOverride> ScheduleOverride::parse(llvm::StringRef text) {
  ScheduleOverride given;
  std::pair<llvm::StringRef, std::optional<int64_t> *> numbers[] = {{"rows", &given.rows},
                                                                    {"groups", &given.groups},
                                                                    {"chunk", &given.chunk},
                                                                    {"panels", &given.panels}};
  for (llvm::StringRef item : llvm::split(text, ',')) {
    if (text.empty())
      break;
    auto [name, value] = item.split('=');
    auto *found = llvm::find_if(numbers, [&](auto &number) { return number.first == name; });
    if (found == std::end(numbers))
      return wrong("expected rows, groups, chunk or panels, found '{0}'", name);
    int64_t number;
    if (value.getAsInteger(10, number) || number < 1)
      return wrong("expected {0} to be a positive number, found '{1}'", name, value);
    *found->second = number;
  }
  return given;
}

llvm::Error ScheduleOverride::check(const ContractionSchedule &schedule,
                                    const ContractionProblem &problem,
                                    const TargetInfo &target) const {
  // Accumulators, the vectors, one broadcast.
  int64_t registers = schedule.rows * schedule.groups + schedule.groups + 1;
  if (registers > target.vectorRegisters)
    return wrong("expected rows * groups + groups + 1 of at most {0} registers, found {1}",
                 target.vectorRegisters, registers);
  if (schedule.rows > problem.rowCount)
    return wrong("expected rows of at most {0}, found {1}", problem.rowCount, schedule.rows);
  if (schedule.strip % schedule.rows != 0)
    return wrong("expected rows to divide the strip of {0}, found {1}", schedule.strip,
                 schedule.rows);
  int64_t vectors = llvm::divideCeil(problem.laneCount, schedule.width);
  if (schedule.groups > vectors)
    return wrong("expected groups of at most {0}, found {1}", vectors, schedule.groups);
  int64_t innermost = problem.reduced.empty() ? 1 : problem.reduced.back();
  if (innermost % schedule.chunk != 0)
    return wrong("expected chunk to divide {0}, found {1}", innermost, schedule.chunk);
  if (schedule.chunk < innermost && (problem.reduced.size() != 1 || !problem.canSpill))
    return wrong("expected chunk {0}, as partial sums have nowhere to wait, found {1}", innermost,
                 schedule.chunk);
  int64_t panels = std::max<int64_t>(1, schedule.panelsOf(problem));
  if (schedule.panels > panels)
    return wrong("expected panels of at most {0}, found {1}", panels, schedule.panels);
  return llvm::Error::success();
}
