// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-inline-calls: expects graph functions of one block each, which users' passes may
// have outlined; leaves entries without calls, but of primitive functions, and none of the
// functions that only they called.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace weft {
#define GEN_PASS_DEF_INLINECALLS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

/// Puts the body of the callee in place of the call.
static void inlineCall(func::CallOp call, func::FuncOp callee) {
  OpBuilder builder(call);
  IRMapping mapping;
  mapping.map(callee.getArguments(), call.getOperands());
  Block &body = callee.getBody().front();
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  for (auto [result, value] :
       llvm::zip_equal(call.getResults(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(mapping.lookupOrDefault(value));
  call.erase();
}

namespace {

struct InlineCalls : weft::impl::InlineCallsBase<InlineCalls> {
  using InlineCallsBase::InlineCallsBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      if (failed(visit(function, symbols)))
        return signalPassFailure();
    for (func::FuncOp function : functions)
      if (inlined.contains(function) && !function->hasAttr(attr::entry) &&
          SymbolTable::symbolKnownUseEmpty(function, getOperation()))
        function.erase();
  }

private:
  /// Leaves `function` without calls that can be inlined. Callees come first.
  LogicalResult visit(func::FuncOp function, const SymbolTable &symbols) {
    if (!done.insert(function).second)
      return success();
    open.insert(function);
    for (func::CallOp call : llvm::make_early_inc_range(function.getOps<func::CallOp>())) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!callee || !callee.getBody().hasOneBlock() || callee->hasAttr(attr::kernel))
        continue;
      if (open.contains(callee))
        return call.emitOpError() << "expected functions that do not call themselves, found '"
                                  << callee.getName() << "'";
      if (failed(visit(callee, symbols)))
        return failure();
      // Fusion has to know which ops were one; the outermost function decides.
      if (!primitives && callee->hasAttr(attr::primitive) && !function->hasAttr(attr::primitive))
        continue;
      inlineCall(call, callee);
      inlined.insert(callee);
      ++numInlined;
    }
    open.erase(function);
    return success();
  }

  llvm::DenseSet<Operation *> done, open, inlined;
};

} // namespace
