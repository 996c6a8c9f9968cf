// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/PreparedValues.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Graph.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace weft;

static bool isPreparedArgument(func::FuncOp function, unsigned number) {
  auto kind = function.getArgAttrOfType<StringAttr>(number, attr::kind);
  return kind && kind.getValue() != "input" && kind.getValue() != "bound";
}

PreparedValues::PreparedValues(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    if (isPreparedArgument(function, argument.getArgNumber())) {
      prepared.insert(argument);
      ofWeights.insert(argument);
    }
  for (Operation &op : function.front()) {
    auto isPrepared = [&](Value operand) { return contains(operand); };
    if (!isPure(&op) || !llvm::all_of(op.getOperands(), isPrepared))
      continue;
    prepared.insert_range(op.getResults());
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return dependsOnWeight(operand); }))
      ofWeights.insert_range(op.getResults());
  }
}

Value weft::repeatedForChannels(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastInDimOp>();
  bool isPerChannel = broadcast && broadcast.getDims() == ArrayRef<int64_t>(1);
  return isPerChannel ? broadcast.getOperand() : Value();
}
