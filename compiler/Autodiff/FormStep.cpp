// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Closes a differentiated function into one training step. Its last arguments stand for the
// gradients, from which the optimizer's part computes; they are replaced by the gradients
// themselves.
#include "compiler/Autodiff/Passes.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/EntryRole.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/IR/Builders.h"

namespace weft {
#define GEN_PASS_DEF_FORMSTEP
#include "compiler/Autodiff/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

static LogicalResult formStep(func::FuncOp entry) {
  auto inputs = entry->getAttrOfType<IntegerAttr>(attr::jointInputs);
  if (!inputs)
    return entry.emitError() << "expected a differentiated @main";
  int64_t count = inputs.getInt();
  int64_t results = entry->getAttrOfType<IntegerAttr>(attr::jointResults).getInt();
  Block &body = entry.getBody().front();
  Operation *end = body.getTerminator();
  auto gradients = end->getOperands().drop_front(results);
  int64_t first = count - gradients.size();
  if (first < 0)
    return entry.emitError() << "expected an argument for each of " << gradients.size()
                             << " gradients, found " << count;
  for (auto [number, gradient] : llvm::enumerate(gradients)) {
    BlockArgument stand = body.getArgument(first + number);
    if (stand.getType() != gradient.getType())
      return entry.emitError() << "expected argument " << first + number << " of type "
                               << gradient.getType() << ", found " << stand.getType();
    stand.replaceAllUsesWith(gradient);
  }
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  for (BlockArgument cotangent : body.getArguments().drop_front(count)) {
    RankedTensorType type = tensorType(cotangent);
    auto one = FloatAttr::get(type.getElementType(), 1.0);
    cotangent.replaceAllUsesWith(ConstantOp::create(builder, cotangent.getLoc(),
                                                    DenseElementsAttr::get(type, Attribute(one))));
  }
  SmallVector<Value> kept(end->getOperands().take_front(results));
  end->setOperands(kept);
  llvm::BitVector erased(body.getNumArguments());
  erased.set(first, body.getNumArguments());
  if (failed(entry.eraseArguments(erased)))
    return failure();
  entry.setFunctionType(
      builder.getFunctionType(body.getArgumentTypes(), TypeRange(ValueRange(kept))));
  for (unsigned number : llvm::seq(body.getNumArguments()))
    entry.setArgAttr(number, attr::kind, builder.getStringAttr("input"));
  for (StringRef name : {attr::jointInputs, attr::jointResults, attr::jointWrt, attr::jointRead})
    entry->removeAttr(name);
  // Ops of the optimizer's part read the gradients, but stand before them.
  sortTopologically(&body);
  return success();
}

namespace {

struct FormStep : weft::impl::FormStepBase<FormStep> {
  using FormStepBase::FormStepBase;

  void runOnOperation() override {
    func::FuncOp entry = entryOf(getOperation(), EntryRole::main);
    if (!entry) {
      getOperation().emitError() << "expected an entry of role main";
      return signalPassFailure();
    }
    if (failed(formStep(entry)))
      signalPassFailure();
  }
};

} // namespace
