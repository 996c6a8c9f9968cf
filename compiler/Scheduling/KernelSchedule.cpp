// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Scheduling/KernelSchedule.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Contraction/ContractionMatch.h"
#include "compiler/Kernels/Contraction/SiblingContractions.h"
#include "compiler/Kernels/DotProduct/GroupedMatmulSchedule.h"
#include "compiler/Kernels/Emission/BlockedSummation.h"
#include "compiler/Scheduling/AttentionChoice.h"
#include "compiler/Scheduling/ContractionChoice.h"
#include "compiler/Scheduling/DotChoice.h"
#include "compiler/Scheduling/NestChoice.h"
#include "compiler/Scheduling/ScatterChoice.h"
#include "compiler/Scheduling/SortChoice.h"
#include "compiler/Scheduling/WinogradChoice.h"

using namespace mlir;
using namespace weft;

namespace {

/// Chooses for one kernel. Each method that returns an attribute returns null if its emitter does
/// not suit the kernel.
class KernelScheduler {
public:
  KernelScheduler(func::FuncOp kernel, const TargetInfo &target, const ScheduleOverride &given)
      : kernel(kernel), target(target), given(given), context(kernel.getContext()) {}

  FailureOr<ScheduleAttr> run();

private:
  ScheduleAttr choose(EmitterKind emitter);
  ScheduleAttr contraction();
  ScheduleAttr winograd();
  ScheduleAttr skinnyMatmul();
  ScheduleAttr rowDot();
  ScheduleAttr attention();
  ScheduleAttr groupedMatmul();
  ScheduleAttr scatter();
  ScheduleAttr sort();
  ScheduleAttr nest();
  ScheduleAttr transpose(EmitterKind emitter);
  SmallVector<EmitterKind> candidates();
  LogicalResult read(DictionaryAttr part);

  /// What is not divided among the threads: work that is small and not already distributed.
  bool isSerial(bool isSmall) const { return isSmall && !kernel->hasAttr(attr::crossThreadReads); }
  ScheduleAttr make(EmitterKind emitter, bool serial, ArrayRef<DictionaryAttr> parts);

  func::FuncOp kernel;
  const TargetInfo &target;
  ScheduleOverride given;
  MLIRContext *context;
  bool refused = false; ///< a diagnostic says why
};

} // namespace

/// Below so many multiply-adds, times two, a barrier and cold caches cost more than other cores
/// gain.
static constexpr int64_t smallFlops = 400'000, smallDotFlops = 300'000;

ScheduleAttr KernelScheduler::make(EmitterKind emitter, bool serial,
                                   ArrayRef<DictionaryAttr> parts) {
  auto emitError = [&] { return kernel.emitError("schedule: "); };
  ScheduleAttr schedule = ScheduleAttr::getChecked(emitError, context, emitter, serial, parts);
  refused |= !schedule;
  return schedule;
}

ScheduleAttr KernelScheduler::contraction() {
  auto matches = matchSiblings<ContractionMatch>(kernel, target);
  if (failed(matches))
    return {};
  SmallVector<DictionaryAttr> parts;
  for (const ContractionMatch &match : *matches) {
    llvm::Expected<ContractionSchedule> chosen = chooseContraction(match.problem, target, given);
    if (!chosen) {
      refused = true;
      linalg::GenericOp(match.generic).emitError(llvm::toString(chosen.takeError()));
      return {};
    }
    parts.push_back(writeFields(context, *chosen));
  }
  return make(EmitterKind::contraction, isSerial(flopsOf(*matches) < smallFlops), parts);
}

ScheduleAttr KernelScheduler::winograd() {
  auto op = onlyOp<WinogradConvOp>(kernel);
  if (!op)
    return {};
  WinogradSchedule chosen = chooseWinograd(WinogradProblem::of(op), target);
  return make(EmitterKind::winograd, /*serial=*/false, writeFields(context, chosen));
}

ScheduleAttr KernelScheduler::skinnyMatmul() {
  auto matches = matchSiblings<SkinnyMatmulMatch>(kernel, target);
  if (failed(matches))
    return {};
  SmallVector<DictionaryAttr> parts;
  for (const SkinnyMatmulMatch &match : *matches) {
    std::optional<SkinnyMatmulSchedule> chosen = chooseSkinnyMatmul(match.problem, target);
    if (!chosen)
      return {};
    parts.push_back(writeFields(context, *chosen));
  }
  return make(EmitterKind::skinny_matmul, isSerial(flopsOf(*matches) < smallDotFlops), parts);
}

ScheduleAttr KernelScheduler::rowDot() {
  auto matches = matchSiblings<DotMatch>(kernel, target);
  if (failed(matches))
    return {};
  SmallVector<DictionaryAttr> parts;
  for (const DotMatch &match : *matches)
    parts.push_back(writeFields(context, chooseRowDot(match.problem, target)));
  return make(EmitterKind::row_dot, isSerial(flopsOf(*matches) < smallDotFlops), parts);
}

ScheduleAttr KernelScheduler::attention() {
  auto op = onlyOp<AttentionOp>(kernel);
  if (!op)
    return {};
  auto problem = AttentionProblem::of(op);
  std::optional<AttentionSchedule> chosen = chooseAttention(problem, target);
  if (!chosen)
    return {};
  return make(EmitterKind::attention, isSerial(problem.flops() < smallFlops),
              writeFields(context, *chosen));
}

ScheduleAttr KernelScheduler::groupedMatmul() {
  auto op = onlyOp<GroupedDotOp>(kernel);
  if (!op)
    return {};
  GroupedMatmulSchedule chosen;
  ArrayRef<int64_t> shape = tensorType(op.getWeights()).getShape();
  int64_t columns = shape[1], depth = shape[2];
  chosen.width = target.lanes(32);
  chosen.groups = target.vectorRegisters >= 32 ? 4 : 2;
  chosen.chunk = std::min(depth, 2 * longestChain);
  int64_t flops = 2 * tensorType(op.getRows()).getDimSize(0) * columns * depth;
  return make(EmitterKind::grouped_matmul, isSerial(flops < smallFlops),
              writeFields(context, chosen));
}

ScheduleAttr KernelScheduler::scatter() {
  auto op = onlyOp<ScatterOp>(kernel);
  if (!op)
    return {};
  ScatterChoice chosen = chooseScatter(op, target);
  return make(EmitterKind::scatter, chosen.isSmall, writeFields(context, chosen.schedule));
}

ScheduleAttr KernelScheduler::sort() {
  auto op = onlyOp<SortOp>(kernel);
  if (!op)
    return {};
  return make(EmitterKind::sort, isSmallSort(op), writeFields(context, chooseSort(op, target)));
}

ScheduleAttr KernelScheduler::nest() {
  WorkEstimate work(kernel);
  auto parts =
      llvm::map_to_vector(chooseNests(kernel, work, target),
                          [&](const NestSchedule &nest) { return writeFields(context, nest); });
  return make(EmitterKind::loop_nest, isSerial(work.isSmall()), parts);
}

ScheduleAttr KernelScheduler::transpose(EmitterKind emitter) {
  WorkEstimate work(kernel);
  std::optional<TransposeSchedule> chosen = chooseTranspose(kernel, emitter, work, target);
  if (!chosen)
    return {};
  return make(emitter, isSerial(work.isSmall()), writeFields(context, *chosen));
}

ScheduleAttr KernelScheduler::choose(EmitterKind emitter) {
  switch (emitter) {
  case EmitterKind::contraction:
    return contraction();
  case EmitterKind::winograd:
    return winograd();
  case EmitterKind::skinny_matmul:
    return skinnyMatmul();
  case EmitterKind::row_dot:
    return rowDot();
  case EmitterKind::attention:
    return attention();
  case EmitterKind::grouped_matmul:
    return groupedMatmul();
  case EmitterKind::scatter:
    return scatter();
  case EmitterKind::sort:
    return sort();
  case EmitterKind::loop_nest:
    return nest();
  case EmitterKind::token_blocks_to_rows:
  case EmitterKind::rows_to_token_blocks:
    return transpose(emitter);
  }
  llvm_unreachable("unknown emitter");
}

/// The emitters for the kernel's kind, the fastest that suits it first.
SmallVector<EmitterKind> KernelScheduler::candidates() {
  StringRef kind = kernel->getAttrOfType<StringAttr>(attr::kernel).getValue();
  if (kind == "attention")
    return {EmitterKind::attention};
  if (kind == "grouped_dot")
    return {EmitterKind::grouped_matmul};
  if (kind == "scatter")
    return {EmitterKind::scatter};
  if (kind == "sort")
    return {EmitterKind::sort};
  if (kind == "contraction")
    return {EmitterKind::winograd, EmitterKind::contraction, EmitterKind::skinny_matmul,
            EmitterKind::row_dot, EmitterKind::loop_nest};
  return {EmitterKind::token_blocks_to_rows, EmitterKind::rows_to_token_blocks,
          EmitterKind::loop_nest};
}

/// Takes the fields of an incomplete schedule.
LogicalResult KernelScheduler::read(DictionaryAttr part) {
  std::pair<StringRef, std::optional<int64_t> *> fields[] = {{"rows", &given.rows},
                                                             {"groups", &given.groups},
                                                             {"chunk", &given.chunk},
                                                             {"panels", &given.panels}};
  for (NamedAttribute entry : part) {
    auto *found =
        llvm::find_if(fields, [&](auto &field) { return field.first == entry.getName(); });
    if (found == std::end(fields))
      return kernel.emitError("schedule: expected all fields, or some of rows, groups, chunk and "
                              "panels, found ")
             << entry.getName();
    *found->second = cast<IntegerAttr>(entry.getValue()).getInt();
  }
  return success();
}

FailureOr<ScheduleAttr> KernelScheduler::run() {
  auto present = kernel->getAttrOfType<ScheduleAttr>(attr::schedule);
  if (present && present.isComplete())
    return present;
  SmallVector<EmitterKind> emitters = candidates();
  if (present) {
    emitters = {present.getEmitter()};
    for (DictionaryAttr part : present.getParts())
      if (failed(read(part)))
        return failure();
  }
  for (EmitterKind emitter : emitters) {
    if (ScheduleAttr chosen = choose(emitter))
      return chosen;
    if (refused)
      return failure();
  }
  if (present)
    return kernel.emitError("schedule: emitter '")
           << stringifyEmitterKind(present.getEmitter()) << "' does not suit this kernel";
  return kernel.emitError("no emitter takes this kernel");
}

FailureOr<ScheduleAttr> weft::scheduleKernel(func::FuncOp kernel, const TargetInfo &target,
                                             const ScheduleOverride &given) {
  return KernelScheduler(kernel, target, given).run();
}
