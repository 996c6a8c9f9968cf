// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reverse-mode differentiation of a graph: from the results back to the arguments, every op turns
// the cotangents of its results into those of its operands. What an op's derivative is it knows
// itself (compiler/Graph/Derivative.h).
#include "compiler/Autodiff/Passes.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Derivative.h"
#include "mlir/IR/Builders.h"

namespace weft {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "compiler/Autodiff/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

static bool isReal(Value value) { return isa<FloatType>(tensorType(value).getElementType()); }

static RankedTensorType rowMajor(Value value) {
  return withLayout(tensorType(value), LayoutAttr());
}

namespace {

class ReverseWalk {
public:
  ReverseWalk(func::FuncOp entry, ArrayRef<int64_t> wrt, ArrayRef<int64_t> results)
      : entry(entry), wrt(wrt), results(results), body(entry.getBody().front()),
        builder(body.getTerminator()) {}

  /// `alone`: the gradients are all that @main gives, a program like any other.
  LogicalResult run(bool alone) {
    if (failed(check("wrt", wrt, entry.getArgumentTypes())) ||
        failed(check("results", results, entry.getResultTypes())))
      return failure();
    unsigned inputs = body.getNumArguments();
    markActive();
    SmallVector<Operation *> forward;
    for (Operation &op : body.without_terminator())
      forward.push_back(&op);
    if (failed(seed()))
      return failure();
    for (Operation *op : llvm::reverse(forward))
      if (failed(visit(op)))
        return failure();
    finish(inputs, alone);
    return decomposeRepeated();
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

  /// Values through which an argument of `wrt` reaches others.
  void markActive() {
    for (int64_t number : wrt)
      active.insert(body.getArgument(number));
    for (Operation &op : body.without_terminator()) {
      bool reached = llvm::any_of(op.getOperands(), [&](Value v) { return active.contains(v); });
      if (!reached || op.hasAttr(attr::stopsGradient))
        continue;
      for (Value result : op.getResults())
        if (isReal(result))
          active.insert(result);
    }
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
      accumulate(result, body.getArguments().back());
    }
    return success();
  }

  void accumulate(Value value, Value cotangent) {
    if (!active.contains(value))
      return;
    Value &sum = cotangents[value];
    sum = sum ? AddOp::create(builder, cotangent.getLoc(), sum, cotangent).getResult() : cotangent;
  }

  LogicalResult visit(Operation *op) {
    SmallVector<Value> known;
    for (Value result : op->getResults())
      known.push_back(cotangents.lookup(result));
    if (llvm::none_of(known, [](Value value) { return bool(value); }))
      return success();
    SmallVector<bool> wanted;
    for (Value operand : op->getOperands())
      wanted.push_back(active.contains(operand));
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    Cotangents rule(builder, op, known, wanted);
    if (!differentiable || failed(differentiable.buildVJP(rule)))
      return op->emitError() << nameOf(op) << " has no derivative";
    for (unsigned number : llvm::seq(op->getNumOperands()))
      if (Value cotangent = rule.given(number))
        accumulate(op->getOperand(number), cotangent);
    if (differentiable.repeatsSteps()) {
      repeated.push_back(op);
      for (Value operand : op->getOperands())
        if (auto argument = dyn_cast<BlockArgument>(operand))
          read.insert(argument.getArgNumber());
    }
    return success();
  }

  /// As the user knows it, where that is recorded.
  static StringRef nameOf(Operation *op) {
    auto fallback = dyn_cast<TorchFallbackOp>(op);
    return fallback ? fallback.getTarget() : op->getName().getStringRef();
  }

  void finish(unsigned inputs, bool alone) {
    Operation *end = body.getTerminator();
    unsigned program = end->getNumOperands();
    SmallVector<Value> returned;
    if (!alone)
      llvm::append_range(returned, end->getOperands());
    for (int64_t number : wrt) {
      BlockArgument argument = body.getArgument(number);
      Value gradient = cotangents.lookup(argument);
      returned.push_back(gradient ? gradient : zeros(rowMajor(argument), argument.getLoc()));
    }
    end->setOperands(returned);
    entry.setFunctionType(
        builder.getFunctionType(body.getArgumentTypes(), TypeRange(ValueRange(returned))));
    if (alone) {
      // Nothing is prepared from the weights of a program that runs for its gradients.
      for (unsigned number : llvm::seq(inputs))
        entry.setArgAttr(number, attr::kind, builder.getStringAttr("input"));
      return;
    }
    entry->setAttr(attr::jointInputs, builder.getI64IntegerAttr(inputs));
    entry->setAttr(attr::jointResults, builder.getI64IntegerAttr(program));
    entry->setAttr(attr::jointWrt, builder.getDenseI64ArrayAttr(wrt));
    if (!read.empty())
      entry->setAttr(attr::jointRead, builder.getDenseI64ArrayAttr(read.getArrayRef()));
  }

  Value zeros(RankedTensorType type, Location location) {
    Attribute zero = builder.getZeroAttr(type.getElementType());
    return ConstantOp::create(builder, location, DenseElementsAttr::get(type, zero));
  }

  LogicalResult decomposeRepeated() {
    for (Operation *op : repeated) {
      OpBuilder before(op);
      FailureOr<SmallVector<Value>> values = cast<CompositeOpInterface>(op).decompose(before);
      if (failed(values))
        return op->emitOpError() << "expected a decomposition, found none";
      op->replaceAllUsesWith(*values);
      op->erase();
    }
    return success();
  }

  func::FuncOp entry;
  ArrayRef<int64_t> wrt, results;
  Block &body;
  OpBuilder builder;
  llvm::DenseSet<Value> active;
  llvm::DenseMap<Value, Value> cotangents;
  SmallVector<Operation *> repeated;
  llvm::SetVector<int64_t> read; ///< arguments, by their derivatives
};

struct Differentiate : weft::impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override {
    auto entry = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!entry) {
      getOperation().emitError() << "expected a function @main";
      return signalPassFailure();
    }
    if (failed(ReverseWalk(entry, wrt, of).run(alone)))
      signalPassFailure();
  }
};

} // namespace
