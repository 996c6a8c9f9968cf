// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Marks kernel arguments noalias, which the memory plan guarantees: the buffers of a call do not
// overlap, except results that reuse an argument's buffer.
#include "compiler/Graph/KernelSignature.h"
#include "compiler/Kernels/Kernels.h"
#include "compiler/Lowering/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace weft;

namespace weft {
#define GEN_PASS_DEF_MARKKERNELARGUMENTS
#include "compiler/Lowering/Passes.h.inc"
} // namespace weft

namespace {

/// Results that may reuse an argument's buffer, and those arguments.
llvm::SmallDenseSet<unsigned> sharingArguments(func::FuncOp kernel) {
  llvm::SmallDenseSet<unsigned> sharing;
  for (unsigned number : llvm::seq(kernel.getNumArguments()))
    if (auto places = kernel.getArgAttrOfType<DenseI64ArrayAttr>(number, attr::inPlace)) {
      sharing.insert(number);
      sharing.insert_range(places.asArrayRef());
    }
  return sharing;
}

struct MarkKernelArguments : weft::impl::MarkKernelArgumentsBase<MarkKernelArguments> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(attr::kernel))
      return markAllAnalysesPreserved();
    // Work-chunk counters are written by other threads.
    std::optional<unsigned> counters = KernelSignature::of(kernel).counterNumber();
    llvm::SmallDenseSet<unsigned> sharing = sharingArguments(kernel);
    for (BlockArgument argument : kernel.getArguments())
      if (isa<MemRefType>(argument.getType()) && argument.getArgNumber() != counters &&
          !sharing.contains(argument.getArgNumber()))
        kernel.setArgAttr(argument.getArgNumber(), LLVM::LLVMDialect::getNoAliasAttrName(),
                          UnitAttr::get(&getContext()));
  }
};

} // namespace
