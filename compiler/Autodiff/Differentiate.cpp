// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reverse-mode differentiation of a graph: from the results back to the arguments, every op turns
// the cotangents of its results into those of its operands, by the rule that is attached to it
// (compiler/Graph/Derivative.h).
#include "compiler/Autodiff/Passes.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/EntryRole.h"
#include "compiler/Graph/ReverseWalk.h"
#include "mlir/IR/Builders.h"

namespace weft {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "compiler/Autodiff/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

static RankedTensorType rowMajor(Value value) {
  return withLayout(tensorType(value), LayoutAttr());
}

namespace {

class Differentiator {
public:
  Differentiator(func::FuncOp entry, ArrayRef<int64_t> wrt, ArrayRef<int64_t> results)
      : entry(entry), wrt(wrt), results(results), body(entry.getBody().front()),
        builder(body.getTerminator()), walk(builder) {}

  /// With `alone`, @main returns nothing but the gradients and is a program like any other.
  LogicalResult run(bool alone) {
    if (failed(check("wrt", wrt, entry.getArgumentTypes())) ||
        failed(check("results", results, entry.getResultTypes())))
      return failure();
    unsigned inputs = body.getNumArguments();
    SmallVector<Operation *> forward;
    for (Operation &op : body.without_terminator())
      forward.push_back(&op);
    for (int64_t number : wrt)
      walk.activate(body.getArgument(number));
    walk.activateResults(forward);
    if (failed(seed()) || failed(walk.run(forward)))
      return failure();
    finish(inputs, alone);
    return walk.decomposeRepeated();
  }

private:
  LogicalResult check(StringRef what, ArrayRef<int64_t> numbers, TypeRange types) {
    for (int64_t number : numbers) {
      if (number < 0 || number >= static_cast<int64_t>(types.size()))
        return entry.emitError() << "expected " << what << " below " << types.size() << ", found "
                                 << number;
      if (!isa<FloatType>(cast<RankedTensorType>(types[number]).getElementType()))
        return entry.emitError() << "expected " << what << " of floats, found " << types[number];
    }
    return success();
  }

  LogicalResult seed() {
    Operation *end = body.getTerminator();
    for (int64_t number : results) {
      Value result = end->getOperand(number);
      std::string name = "gradient " + std::to_string(number);
      DictionaryAttr attributes = builder.getDictionaryAttr(
          {builder.getNamedAttr(attr::name, builder.getStringAttr(name)),
           builder.getNamedAttr(attr::kind, builder.getStringAttr("input"))});
      if (failed(entry.insertArgument(body.getNumArguments(), rowMajor(result), attributes,
                                      result.getLoc())))
        return failure();
      walk.accumulate(result, body.getArguments().back());
    }
    return success();
  }

  void finish(unsigned inputs, bool alone) {
    Operation *end = body.getTerminator();
    unsigned program = end->getNumOperands();
    SmallVector<Value> returned;
    if (!alone)
      llvm::append_range(returned, end->getOperands());
    for (int64_t number : wrt) {
      BlockArgument argument = body.getArgument(number);
      Value gradient = walk.cotangentOf(argument);
      returned.push_back(gradient ? gradient : zeros(rowMajor(argument), argument.getLoc()));
    }
    end->setOperands(returned);
    entry.setFunctionType(
        builder.getFunctionType(body.getArgumentTypes(), TypeRange(ValueRange(returned))));
    if (alone) {
      // In a program that is run for its gradients alone, no weight may be prepared ahead of the
      // call, so that all arguments are inputs.
      for (unsigned number : llvm::seq(inputs))
        entry.setArgAttr(number, attr::kind, builder.getStringAttr("input"));
      return;
    }
    entry->setAttr(attr::jointInputs, builder.getI64IntegerAttr(inputs));
    entry->setAttr(attr::jointResults, builder.getI64IntegerAttr(program));
    entry->setAttr(attr::jointWrt, builder.getDenseI64ArrayAttr(wrt));
    // The numbers of the arguments that the derivatives of decomposed ops read.
    llvm::SetVector<int64_t> read;
    for (Operation *op : walk.getRepeated())
      for (Value operand : op->getOperands())
        if (auto argument = dyn_cast<BlockArgument>(operand))
          read.insert(argument.getArgNumber());
    if (!read.empty())
      entry->setAttr(attr::jointRead, builder.getDenseI64ArrayAttr(read.getArrayRef()));
  }

  Value zeros(RankedTensorType type, Location location) {
    Attribute zero = builder.getZeroAttr(type.getElementType());
    return ConstantOp::create(builder, location, DenseElementsAttr::get(type, zero));
  }

  func::FuncOp entry;
  ArrayRef<int64_t> wrt, results;
  Block &body;
  OpBuilder builder;
  ReverseWalk walk;
};

struct Differentiate : weft::impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override {
    func::FuncOp entry = entryOf(getOperation(), EntryRole::main);
    if (!entry) {
      getOperation().emitError() << "expected an entry of role main";
      return signalPassFailure();
    }
    if (failed(Differentiator(entry, wrt, of).run(alone)))
      signalPassFailure();
  }
};

} // namespace
