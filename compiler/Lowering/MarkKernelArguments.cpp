// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Passes the memory plan's promise on to LLVM: buffers of one kernel call do not overlap.
#include "compiler/Lowering/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_MARKKERNELARGUMENTS
#include "compiler/Lowering/Passes.h.inc"
} // namespace weft

namespace {

struct MarkKernelArguments : weft::impl::MarkKernelArgumentsBase<MarkKernelArguments> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr("weft.kernel"))
      return markAllAnalysesPreserved();
    // Other threads write what is claimed.
    unsigned claims = kernel.getNumArguments() - (kernel->hasAttr("weft.claims") ? 3 : 0);
    for (BlockArgument argument : kernel.getArguments())
      if (isa<MemRefType>(argument.getType()) && argument.getArgNumber() != claims)
        kernel.setArgAttr(argument.getArgNumber(), LLVM::LLVMDialect::getNoAliasAttrName(),
                          UnitAttr::get(&getContext()));
  }
};

} // namespace
