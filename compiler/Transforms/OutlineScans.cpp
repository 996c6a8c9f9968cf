// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-outline-scans: expects scans in any function; replaces each by a loop over a new
// function of one block, marked weft.step.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/IR/SymbolTable.h"

namespace weft {
#define GEN_PASS_DEF_OUTLINESCANS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

/// The step of `scan` as a function, which takes over its body. What is the same in all steps
/// is marked as a constant: passes prepare it as they do weights.
static func::FuncOp outlineStep(ScanOp scan) {
  OpBuilder builder(scan.getContext());
  auto type = builder.getFunctionType(scan.getStepInputs(), scan.getStepResults());
  auto step = func::FuncOp::create(scan.getLoc(), "step", type);
  step.setPrivate();
  step->setAttr(attr::step, builder.getUnitAttr());
  size_t changing = scan.getInits().size() + scan.getSequences().size();
  for (unsigned number : llvm::seq(step.getNumArguments()))
    step.setArgAttr(number, attr::kind,
                    builder.getStringAttr(number < changing ? "input" : "constant"));
  step.getBody().takeBody(scan.getBody());
  Operation *yield = step.front().getTerminator();
  builder.setInsertionPoint(yield);
  func::ReturnOp::create(builder, yield->getLoc(), yield->getOperands());
  yield->erase();
  return step;
}

static void outline(ScanOp scan, SymbolTable &symbols) {
  func::FuncOp step = outlineStep(scan);
  StringAttr name = symbols.insert(step);
  OpBuilder builder(scan);
  auto loop =
      LoopOp::create(builder, scan.getLoc(), scan.getResultTypes(), name, scan.getInits(),
                     scan.getSequences(), scan.getInvariants(), ValueRange(), scan.getLength(),
                     scan.getReverse(), /*factor=*/1, FlatSymbolRefAttr());
  loop->setDiscardableAttrs(scan->getDiscardableAttrDictionary());
  scan.replaceAllUsesWith(loop);
  scan.erase();
}

namespace {

struct OutlineScans : weft::impl::OutlineScansBase<OutlineScans> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<ScanOp> scans; // inner ones first
    getOperation().walk([&](ScanOp scan) { scans.push_back(scan); });
    for (ScanOp scan : scans)
      outline(scan, symbols);
    numOutlined += scans.size();
  }
};

} // namespace
