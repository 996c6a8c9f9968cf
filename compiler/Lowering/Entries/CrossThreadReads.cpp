// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Lowering/Entries/CrossThreadReads.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Lowering/Entries/EntryIR.h"

using namespace mlir;
using namespace weft;

/// Transferring more bytes between the caches of any two cores takes longer than a barrier.
static constexpr int64_t manyBytes = 8 << 10;

static int64_t bytesOf(Value tensor) { return byteSize(cast<ShapedType>(tensor.getType())); }

Value weft::ownerOf(Value tensor) {
  while (isa_and_present<UnrealizedConversionCastOp, AdvanceOp>(tensor.getDefiningOp()))
    tensor = tensor.getDefiningOp()->getOperand(0);
  return tensor;
}

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

void CrossThreadReads::add(func::FuncOp kernel) {
  if (!isSerial(kernel))
    divided.insert(kernel.getName());
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
