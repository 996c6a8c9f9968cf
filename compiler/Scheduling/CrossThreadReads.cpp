// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Scheduling/CrossThreadReads.h"
#include "compiler/Graph/EntryFunctions.h"

using namespace mlir;
using namespace weft;

/// Transferring more bytes between the caches of any two cores takes longer than a barrier.
static constexpr int64_t manyBytes = 8 << 10;

static int64_t bytesOf(Value tensor) { return byteSize(cast<ShapedType>(tensor.getType())); }

CrossThreadReads::CrossThreadReads(ModuleOp module) {
  for (func::FuncOp entry : entriesAndSteps(module))
    for (func::CallOp call : entry.getOps<func::CallOp>())
      calls[call.getCallee()].push_back(call);
}

bool CrossThreadReads::by(StringRef kernel) const {
  auto found = calls.find(kernel);
  return found != calls.end() &&
         llvm::all_of(found->second, [&](func::CallOp call) { return isReader(call); });
}

bool CrossThreadReads::isReader(func::CallOp call) const {
  int64_t bytes = 0;
  for (Value operand : call.getOperands())
    if (auto maker = ownerOf(operand).getDefiningOp<func::CallOp>())
      if (divided.contains(maker.getCallee()))
        bytes += bytesOf(operand);
  auto isDividedAgain = [](Value result) {
    return bytesOf(result) >= manyBytes ||
           llvm::all_of(result.getUsers(), llvm::IsaPred<func::ReturnOp>);
  };
  return bytes >= manyBytes && llvm::all_of(call.getResults(), isDividedAgain);
}
