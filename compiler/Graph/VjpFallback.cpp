// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The derivative of an op that PyTorch runs, if it is a source of random numbers or a kernel of
// tensor expressions. For the kernel NAME there is an op NAME_gradient in the same library, which
// takes the same tensors and the cotangents of all floating-point results, and gives those of all
// floating-point parameters.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Derivative.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace weft;

/// The operand of each parameter, if all parameters are tensors as they stand.
static FailureOr<SmallVector<unsigned>> parametersOf(TorchFallbackOp op) {
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(op.getArguments());
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return failure();
  }
  const llvm::json::Array *entries = parsed->getAsArray();
  if (!entries)
    return failure();
  SmallVector<unsigned> operands;
  for (const llvm::json::Value &entry : *entries) {
    const llvm::json::Object *object = entry.getAsObject();
    std::optional<int64_t> number = object ? object->getInteger("tensor") : std::nullopt;
    if (!number || *number < 0 || *number >= int64_t(op.getOperands().size()))
      return failure();
    operands.push_back(unsigned(*number));
  }
  return operands;
}

static bool isReal(Value value) { return isa<FloatType>(tensorType(value).getElementType()); }

/// Random numbers depend on no values.
static bool isRandom(StringRef name) {
  return llvm::any_of(ArrayRef<StringRef>{"aten.bernoulli.", "aten.rand.", "aten.randn.",
                                          "aten.rand_like.", "aten.randn_like.", "aten.empty.",
                                          "aten.empty_like."},
                      [&](StringRef prefix) { return name.starts_with(prefix); });
}

static LogicalResult fallbackVjp(TorchFallbackOp op, Cotangents &c) {
  StringRef name = op.getTarget();
  if (isRandom(name))
    return success();
  if (!name.starts_with("weft_te.") || !name.consume_back(".default"))
    return failure();
  FailureOr<SmallVector<unsigned>> parameters = parametersOf(op);
  if (failed(parameters))
    return failure();
  SmallVector<Value> operands;
  SmallVector<Type> types;
  for (unsigned number : *parameters) {
    Value value = op.getOperands()[number];
    operands.push_back(value);
    if (isReal(value))
      types.push_back(withLayout(tensorType(value), LayoutAttr()));
  }
  for (auto [number, result] : llvm::enumerate(op.getResults()))
    if (isReal(result))
      operands.push_back(c.of(number) ? c.of(number) : c.splat(result, 0));
  std::string arguments;
  for (unsigned number : llvm::seq<unsigned>(operands.size()))
    arguments += llvm::formatv("{0}{{\"tensor\": {1}}", number ? ", " : "", number).str();
  auto gradient =
      TorchFallbackOp::create(c.getBuilder(), op.getLoc(), types, operands,
                              (name + "_gradient.default").str(), "[" + arguments + "]");
  // A tensor that was given twice gets the sum.
  SmallVector<Value> sums(op.getOperands().size());
  unsigned next = 0;
  for (unsigned number : *parameters) {
    if (!isReal(op.getOperands()[number]))
      continue;
    Value cotangent = gradient.getResult(next++);
    sums[number] = sums[number] ? c.add(sums[number], cotangent) : cotangent;
  }
  for (auto [number, sum] : llvm::enumerate(sums))
    if (sum)
      c.give(unsigned(number), sum);
  return success();
}

void weft::deriveFallback(MLIRContext *context) { derive<TorchFallbackOp, fallbackVjp>(context); }
