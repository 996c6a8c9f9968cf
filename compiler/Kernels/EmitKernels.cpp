// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Chooses the emitter of a kernel, after checking that emitters can follow its ops.
#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/Emitters.h"
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
             tensor::CastOp, arith::ConstantOp, UnrealizedConversionCastOp, AttentionOp,
             GroupedDotOp, WinogradConvOp, CumulativeOp, ScatterOp, SortOp>(op))
      return op.emitError("no emitter follows '") << op.getName() << "'";
  return success();
}

LogicalResult weft::emitKernel(func::FuncOp source, const TargetInfo &target,
                               const ScheduleOverride &given) {
  if (failed(checkKernel(source)))
    return failure();
  StringRef kind = source->getAttrOfType<StringAttr>(attr::kernel).getValue();
  SmallVector<LogicalResult (*)(KernelFunction &)> emitters;
  if (kind == "attention")
    emitters = {emitAttention};
  else if (kind == "grouped_dot")
    emitters = {emitGroupedMatmul};
  else if (kind == "scatter")
    emitters = {emitScatter};
  else if (kind == "sort")
    emitters = {emitSort};
  else if (kind == "contraction")
    emitters = {emitWinograd, emitContraction, emitSkinnyMatmul, emitRowDot, emitLoopNest};
  else
    emitters = {emitTokenBlocksToRows, emitRowsToTokenBlocks, emitLoopNest};
  for (auto emit : emitters) {
    KernelFunction kernel(source, target, given);
    if (failed(emit(kernel)) || kernel.unfollowed) {
      kernel.discard();
      if (kernel.refused)
        return failure();
      continue;
    }
    kernel.replaceSource();
    expandVectorMath(kernel.emitted);
    return success();
  }
  return source.emitError("no emitter takes this kernel");
}

/// The arguments of an emitted kernel: row-major memrefs, scratch, the thread and their number.
static SmallVector<Type> emittedArguments(func::FuncOp kernel) {
  Builder builder(kernel.getContext());
  SmallVector<Type> types;
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    types.push_back(MemRefType::get(tensor.getShape(), tensor.getElementType()));
  }
  auto scratch = kernel->getAttrOfType<IntegerAttr>(attr::scratchBytes);
  types.push_back(MemRefType::get({scratch ? scratch.getInt() : 0}, builder.getI8Type()));
  types.append(2, builder.getIndexType());
  return types;
}

LogicalResult weft::adoptLoops(func::FuncOp kernel, func::FuncOp loops) {
  if (loops.isExternal() || !loops.isPrivate())
    return loops.emitError("expected a private function with a body");
  auto expected = FunctionType::get(kernel.getContext(), emittedArguments(kernel), {});
  if (loops.getFunctionType() != expected)
    return loops.emitError("expected the type ")
           << expected << ", found " << loops.getFunctionType();
  for (NamedAttribute attribute : kernel->getDiscardableAttrs())
    if (attribute.getName() != attr::loops)
      loops->setAttr(attribute.getName(), attribute.getValue());
  auto name = kernel.getSymNameAttr();
  kernel.erase();
  loops.setSymNameAttr(name);
  expandVectorMath(loops);
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
    llvm::Expected<ScheduleOverrides> given = ScheduleOverrides::parse(schedule);
    if (!given) {
      getOperation().emitError(llvm::toString(given.takeError()));
      return signalPassFailure();
    }
    SmallVector<func::FuncOp> kernels;
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(attr::kernel))
        kernels.push_back(function);
    for (func::FuncOp kernel : kernels)
      if (failed(emitKernel(kernel, *target, given->of(kernel.getName()))))
        return signalPassFailure();
  }
};
} // namespace
