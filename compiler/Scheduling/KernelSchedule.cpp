// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Scheduling/KernelSchedule.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Scheduling/Choices.h"

using namespace mlir;
using namespace weft;

/// What may be taken for a kernel: the emitters of its kind, or the one that is given.
static SmallVector<const EmitterChoice *> candidates(func::FuncOp kernel, ScheduleAttr given) {
  SmallVector<const EmitterChoice *> found;
  StringRef kind = kernel->getAttrOfType<StringAttr>(attr::kernel).getValue();
  for (const EmitterChoice &choice : emitterChoices)
    if (given ? choice.emitter == given.getEmitter().getValue() : choice.kind == kind)
      found.push_back(&choice);
  if (given && !found.empty())
    found.resize(1);
  return found;
}

/// Takes the fields of an incomplete schedule.
static LogicalResult read(DictionaryAttr part, KernelToSchedule &kernel) {
  ScheduleOverride &given = kernel.given;
  std::pair<StringRef, std::optional<int64_t> *> fields[] = {{"rows", &given.rows},
                                                             {"groups", &given.groups},
                                                             {"chunk", &given.chunk},
                                                             {"panels", &given.panels}};
  for (NamedAttribute entry : part) {
    auto *found =
        llvm::find_if(fields, [&](auto &field) { return field.first == entry.getName(); });
    if (found == std::end(fields))
      return kernel.kernel.emitError("schedule: expected all fields, or some of rows, groups, "
                                     "chunk and panels, found ")
             << entry.getName();
    *found->second = cast<IntegerAttr>(entry.getValue()).getInt();
  }
  return success();
}

FailureOr<ScheduleAttr> weft::scheduleKernel(func::FuncOp kernel, const TargetInfo &target,
                                             const ScheduleOverride &given) {
  auto present = kernel->getAttrOfType<ScheduleAttr>(attr::schedule);
  if (present && present.isComplete())
    return present;
  KernelToSchedule toSchedule{kernel, target, given};
  toSchedule.explains = kernel.getContext()->getRemarkEngine() != nullptr;
  if (present)
    for (DictionaryAttr part : present.getParts())
      if (failed(read(part, toSchedule)))
        return failure();
  for (const EmitterChoice *candidate : candidates(kernel, present)) {
    FailureOr<ChosenSchedule> chosen = candidate->choose(toSchedule);
    if (failed(chosen))
      return failure();
    if (chosen->parts.empty())
      continue;
    auto emitError = [&] { return kernel.emitError("schedule: "); };
    auto name = StringAttr::get(kernel.getContext(), candidate->emitter);
    ScheduleAttr schedule =
        ScheduleAttr::getChecked(emitError, kernel.getContext(), name, chosen->serial,
                                 ArrayRef<DictionaryAttr>(chosen->parts));
    if (!schedule)
      return failure();
    for (const ComparedSchedules &compared : chosen->compared)
      compared.remark(kernel.getLoc(), kernel.getName(), candidate->emitter,
                      chosen->serial ? 1 : target.team());
    return schedule;
  }
  if (present)
    return kernel.emitError("schedule: emitter '")
           << present.getEmitter().getValue() << "' does not suit this kernel";
  return kernel.emitError("no emitter takes this kernel");
}
