// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the emitter that a kernel's schedule names, after checking that emitters can follow its ops.
#include "compiler/Graph/Graph.h"
#include "compiler/Graph/KernelSignature.h"
#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Kernels/Emitters.h"
#include "compiler/Kernels/Kernels.h"
#include "compiler/Kernels/VectorMath/VectorMath.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

static LogicalResult checkKernel(func::FuncOp kernel) {
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitError("expected a kernel of one block");
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (!isa<linalg::GenericOp, linalg::FillOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
             tensor::ExtractSliceOp, tensor::InsertSliceOp, tensor::PadOp, tensor::EmptyOp,
             tensor::CastOp, arith::ConstantOp, UnrealizedConversionCastOp>(op) &&
        !op.hasTrait<EmittedWhole>())
      return op.emitError("no emitter follows '") << op.getName() << "'";
  return success();
}

/// The schedule of `kernel`, if it says all that its emitter has to know.
static FailureOr<ScheduleAttr> completeSchedule(func::FuncOp kernel) {
  auto schedule = kernel->getAttrOfType<ScheduleAttr>(attr::schedule);
  if (!schedule)
    return kernel.emitError("expected '")
           << attr::schedule << "', which weft-schedule-kernels writes";
  if (schedule.getParts().empty())
    return kernel.emitError("expected a schedule with fields, found ") << schedule;
  for (size_t number = 0; number < schedule.getParts().size(); ++number)
    if (StringRef missing = schedule.missingField(number); !missing.empty())
      return kernel.emitError("expected a schedule with the field '")
             << missing << "', found " << schedule;
  return schedule;
}

LogicalResult weft::emitKernel(func::FuncOp source, const TargetInfo &target) {
  if (failed(checkKernel(source)))
    return failure();
  FailureOr<ScheduleAttr> schedule = completeSchedule(source);
  if (failed(schedule))
    return failure();
  KernelFunction kernel(source, target);
  StringRef name = schedule->getEmitter();
  if (failed(findEmitter(name)->emit(kernel)) || kernel.unfollowed) {
    kernel.discard();
    if (kernel.refused)
      return failure();
    return source.emitError("emitter '") << name << "' cannot follow this kernel";
  }
  kernel.replaceSource();
  expandVectorMath(kernel.emitted, target.lanes(32));
  return success();
}

LogicalResult weft::adoptLoops(func::FuncOp kernel, func::FuncOp loops, const TargetInfo &target) {
  if (loops.isExternal() || !loops.isPrivate())
    return loops.emitError("expected a private function with a body");
  FunctionType expected = KernelSignature::ofTensors(kernel).type(kernel.getContext());
  if (loops.getFunctionType() != expected)
    return loops.emitError("expected the type ")
           << expected << ", found " << loops.getFunctionType();
  for (NamedAttribute attribute : kernel->getDiscardableAttrs())
    if (attribute.getName() != attr::loops)
      loops->setAttr(attribute.getName(), attribute.getValue());
  auto name = kernel.getSymNameAttr();
  kernel.erase();
  loops.setSymNameAttr(name);
  expandVectorMath(loops, target.lanes(32));
  return success();
}

namespace weft {
#define GEN_PASS_DEF_EMITKERNELS
#include "compiler/Kernels/Passes.h.inc"
} // namespace weft

namespace {
class EmitKernels : public weft::impl::EmitKernelsBase<EmitKernels> {
public:
  using EmitKernelsBase::EmitKernelsBase;

  void runOnOperation() override {
    llvm::Expected<TargetInfo> target = TargetInfo::supposed(isa);
    if (!target) {
      getOperation().emitError(llvm::toString(target.takeError()));
      return signalPassFailure();
    }
    SmallVector<func::FuncOp> kernels;
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(attr::kernel))
        kernels.push_back(function);
    for (func::FuncOp kernel : kernels)
      if (failed(emitKernel(kernel, *target)))
        return signalPassFailure();
  }
};
} // namespace
