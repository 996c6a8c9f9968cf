// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/X86/Bf16DotProduct.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

Value weft::addPairProducts(OpBuilder &builder, Location loc, Value sum, Value a, Value b) {
  auto name = builder.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512");
  return LLVM::CallIntrinsicOp::create(builder, loc, sum.getType(), name, ValueRange{sum, a, b})
      .getResult(0);
}
