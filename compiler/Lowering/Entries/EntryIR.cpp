// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Lowering/Entries/EntryIR.h"

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
  auto inputs = callee->getAttrOfType<IntegerAttr>(attr::numInputs);
  int64_t numInputs = inputs ? inputs.getInt() : 0;
  if (callee->hasAttr(attr::service))
    return {operands.take_front(numInputs), operands.drop_front(numInputs), nullptr, nullptr};
  ValueRange memory = operands.drop_back(2);
  Value claims;
  if (callee->hasAttr(attr::claims)) {
    claims = memory.back();
    memory = memory.drop_back();
  }
  ValueRange buffers = memory.drop_back();
  return {buffers.take_front(numInputs), buffers.drop_front(numInputs), memory.back(), claims};
}
