// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// weft-schedule-kernels: kernel after kernel, in the order of the module, as whether a kernel is
// divided among the threads depends on whether those before it are.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Scheduling/ColdWeights.h"
#include "compiler/Scheduling/CrossThreadReads.h"
#include "compiler/Scheduling/KernelSchedule.h"
#include "compiler/Scheduling/Passes.h"
#include "compiler/Target/SupposedTarget.h"
#include <optional>

using namespace mlir;
using namespace weft;

namespace weft {
#define GEN_PASS_DEF_SCHEDULEKERNELS
#include "compiler/Scheduling/Passes.h.inc"
} // namespace weft

/// The loops that the author of a declared kernel has written, or null.
static func::FuncOp loopsOf(func::FuncOp kernel) {
  auto name = kernel->getAttrOfType<FlatSymbolRefAttr>(attr::loops);
  return name ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(kernel, name) : func::FuncOp();
}

/// Whether thread 0 alone runs a kernel that has been scheduled, or is only declared.
static bool isSerial(func::FuncOp kernel) {
  if (auto schedule = kernel->getAttrOfType<ScheduleAttr>(attr::schedule))
    return schedule.getSerial();
  func::FuncOp loops = loopsOf(kernel);
  return kernel->hasAttr(attr::serial) || (loops && loops->hasAttr(attr::serial));
}

namespace {

struct ScheduleKernels : weft::impl::ScheduleKernelsBase<ScheduleKernels> {
  ScheduleKernels() = default;
  ScheduleKernels(ScheduleKernelsOptions options) : ScheduleKernelsBase(std::move(options)) {}
  ScheduleKernels(TargetInfo target, StringRef schedule) : target(std::move(target)) {
    this->schedule = schedule.str();
  }
  ScheduleKernels(const ScheduleKernels &other)
      : ScheduleKernelsBase(other), target(other.target), given(other.given) {}

  LogicalResult initialize(MLIRContext *context) override {
    llvm::Expected<ScheduleOverrides> parsed = ScheduleOverrides::parse(schedule);
    if (!parsed)
      return emitError(UnknownLoc::get(context), llvm::toString(parsed.takeError()));
    given = std::move(*parsed);
    return supposeTarget(target, isa, threads, context);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    CrossThreadReads crossThread(module);
    llvm::StringSet<> cold = findKernelsOfColdWeights(module, target->l3Bytes);
    for (auto kernel : module.getOps<func::FuncOp>()) {
      if (!kernel->hasAttr(attr::kernel) ||
          llvm::any_of(kernel.getArgumentTypes(), llvm::IsaPred<MemRefType>))
        continue; // no kernel, or already emitted
      if (crossThread.by(kernel.getName()))
        kernel->setAttr(attr::crossThreadReads, UnitAttr::get(&getContext()));
      if (cold.contains(kernel.getName()))
        kernel->setAttr(attr::coldWeights, UnitAttr::get(&getContext()));
      if (!kernel.isExternal()) {
        FailureOr<ScheduleAttr> chosen =
            scheduleKernel(kernel, *target, given.of(kernel.getName()));
        if (failed(chosen))
          return signalPassFailure();
        kernel->setAttr(attr::schedule, *chosen);
      }
      if (!isSerial(kernel))
        crossThread.addDivided(kernel.getName());
    }
  }

  std::optional<TargetInfo> target;
  ScheduleOverrides given;
};

} // namespace

std::unique_ptr<Pass> weft::createScheduleKernels(TargetInfo target, StringRef schedule) {
  return std::make_unique<ScheduleKernels>(std::move(target), schedule);
}
