// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Passes the memory plan's promise on to LLVM: buffers of one kernel call do not overlap, but for
// results in the place of arguments.
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

/// Results that a caller may put in an argument's place, and those arguments.
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
    // Other threads write what is claimed.
    unsigned claims = kernel.getNumArguments() - (kernel->hasAttr(attr::claims) ? 3 : 0);
    llvm::SmallDenseSet<unsigned> sharing = sharingArguments(kernel);
    for (BlockArgument argument : kernel.getArguments())
      if (isa<MemRefType>(argument.getType()) && argument.getArgNumber() != claims &&
          !sharing.contains(argument.getArgNumber()))
        kernel.setArgAttr(argument.getArgNumber(), LLVM::LLVMDialect::getNoAliasAttrName(),
                          UnitAttr::get(&getContext()));
  }
};

} // namespace
