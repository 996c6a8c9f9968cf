// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Lowering/Entries/EntryIR.h"
#include "compiler/Graph/KernelSignature.h"

using namespace mlir;
using namespace weft;

EntryIR::EntryIR(func::FuncOp entry) : entry(entry) {
  ArrayRef<BlockArgument> all = entry.getArguments();
  threadsArgument = all.back();
  threadArgument = all.drop_back().back();
  all = all.drop_back(2);
  if (entry->hasAttr(attr::arenaBytes)) {
    arenaArgument = all.back();
    all = all.drop_back();
  }
  tensorArguments.assign(all.begin(), all.end());
}

StringRef weft::serviceOf(func::FuncOp callee) {
  auto service = callee->getAttrOfType<StringAttr>(attr::service);
  return service ? service.getValue() : "";
}

bool weft::isSerial(func::FuncOp callee) {
  return callee->hasAttr(attr::serial) || callee->hasAttr(attr::service);
}

CallOperands weft::operandsOf(func::CallOp call, func::FuncOp callee) {
  ValueRange operands = call.getOperands();
  if (callee->hasAttr(attr::service)) {
    auto marked = callee->getAttrOfType<IntegerAttr>(attr::numInputs);
    int64_t inputs = marked ? marked.getInt() : 0; // a barrier has none
    return {operands.take_front(inputs), operands.drop_front(inputs), nullptr, nullptr};
  }
  KernelSignature signature = KernelSignature::of(callee);
  std::optional<unsigned> counters = signature.counterNumber();
  return {operands.take_front(signature.inputs.size()),
          operands.slice(signature.inputs.size(), signature.outputs.size()),
          operands[signature.scratchNumber()], counters ? operands[*counters] : Value()};
}
