// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The schedules of kernels of one or several contractions: a part for each.
#include "compiler/Kernels/Contraction/ContractionMatch.h"
#include "compiler/Kernels/Contraction/SiblingContractions.h"
#include "compiler/Scheduling/Choices.h"
#include "compiler/Scheduling/ContractionChoice.h"
#include "compiler/Scheduling/DotChoice.h"

using namespace mlir;
using namespace weft;

FailureOr<ChosenSchedule> weft::scheduleContraction(const KernelToSchedule &kernel) {
  auto matches = matchSiblings<ContractionMatch>(kernel.kernel, kernel.target);
  if (failed(matches))
    return ChosenSchedule();
  ChosenSchedule schedule{kernel.isSerial(flopsOf(*matches) < smallFlops)};
  for (const ContractionMatch &match : *matches) {
    llvm::Expected<ContractionSchedule> chosen =
        chooseContraction(match.problem, kernel.target, kernel.given, schedule.next(kernel));
    if (!chosen)
      return linalg::GenericOp(match.generic).emitError(llvm::toString(chosen.takeError()));
    schedule.parts.push_back(kernel.part(*chosen));
  }
  return schedule;
}

FailureOr<ChosenSchedule> weft::scheduleSkinnyMatmul(const KernelToSchedule &kernel) {
  auto matches = matchSiblings<SkinnyMatmulMatch>(kernel.kernel, kernel.target);
  if (failed(matches))
    return ChosenSchedule();
  ChosenSchedule schedule{kernel.isSerial(flopsOf(*matches) < smallDotFlops)};
  for (const SkinnyMatmulMatch &match : *matches) {
    std::optional<SkinnyMatmulSchedule> chosen =
        chooseSkinnyMatmul(match.problem, kernel.target, schedule.next(kernel));
    if (!chosen)
      return ChosenSchedule();
    schedule.parts.push_back(kernel.part(*chosen));
  }
  return schedule;
}

FailureOr<ChosenSchedule> weft::scheduleRowDot(const KernelToSchedule &kernel) {
  auto matches = matchSiblings<DotMatch>(kernel.kernel, kernel.target);
  if (failed(matches))
    return ChosenSchedule();
  ChosenSchedule schedule{kernel.isSerial(flopsOf(*matches) < smallDotFlops)};
  for (const DotMatch &match : *matches)
    schedule.parts.push_back(
        kernel.part(chooseRowDot(match.problem, kernel.target, schedule.next(kernel))));
  return schedule;
}
