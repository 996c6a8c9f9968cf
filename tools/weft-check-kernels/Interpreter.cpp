// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions, ops of tensor, casts between memory and logical tensors, and loops over steps.
#include "Interpreter.h"
#include "ScalarOps.h"
#include "compiler/Graph/Graph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;
using namespace weft::check;

static FailureOr<Tensors> runOp(Operation *op, const Values &values);

/// The results of the ops of a block.
static FailureOr<Tensors> runBlock(Block &block, ArrayRef<TensorRef> arguments) {
  Values values;
  for (auto [argument, tensor] : llvm::zip_equal(block.getArguments(), arguments))
    values[argument] = tensor;
  for (Operation &op : block.without_terminator()) {
    FailureOr<Tensors> results = runOp(&op, values);
    if (failed(results))
      return failure();
    for (auto [result, tensor] : llvm::zip_equal(op.getResults(), *results))
      values[result] = tensor;
  }
  return llvm::map_to_vector(block.getTerminator()->getOperands(),
                             [&](Value value) { return values.lookup(value); });
}

FailureOr<Tensors> weft::check::interpret(func::FuncOp function, ArrayRef<TensorRef> arguments) {
  if (function.isExternal())
    return function.emitError("expected a function with a body");
  return runBlock(function.front(), arguments);
}

//===----------------------------------------------------------------------===//
// Views and copies
//===----------------------------------------------------------------------===//

static TensorRef constantTensor(Type type, Attribute value) {
  auto result = std::make_shared<Tensor>(type);
  auto number = [&](const auto &constant) {
    using Constant = std::decay_t<decltype(constant)>;
    if constexpr (std::is_same_v<Constant, APFloat>) {
      APFloat wide = constant;
      bool lost;
      wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      return Number::ofReal(wide.convertToDouble());
    } else {
      return Number::ofInteger(wrappedTo(result->element, constant.getSExtValue()));
    }
  };
  if (auto real = dyn_cast<FloatAttr>(value))
    result->numbers.front() = number(real.getValue());
  else if (auto integer = dyn_cast<IntegerAttr>(value))
    result->numbers.front() = number(integer.getValue());
  else if (isa<FloatType>(result->element))
    for (auto [to, from] :
         llvm::zip_equal(result->numbers, cast<DenseElementsAttr>(value).getValues<APFloat>()))
      to = number(from);
  else
    for (auto [to, from] :
         llvm::zip_equal(result->numbers, cast<DenseElementsAttr>(value).getValues<APInt>()))
      to = number(from);
  return result;
}

static TensorRef reshaped(Type type, const Tensor &source) {
  auto result = std::make_shared<Tensor>(type);
  result->numbers = source.numbers;
  return result;
}

/// The index in the larger tensor of each element of the slice, which may have fewer dims.
static void forEachOfSlice(ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes,
                           ArrayRef<int64_t> strides,
                           function_ref<void(int64_t number, ArrayRef<int64_t> index)> visit) {
  int64_t number = 0;
  forEachIndex(sizes, [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t> index;
    for (auto [offset, stride, position] : llvm::zip_equal(offsets, strides, at))
      index.push_back(offset + stride * position);
    visit(number++, index);
  });
}

static TensorRef extractSlice(tensor::ExtractSliceOp op, const Tensor &source) {
  auto result = std::make_shared<Tensor>(op.getType());
  forEachOfSlice(
      op.getStaticOffsets(), op.getStaticSizes(), op.getStaticStrides(),
      [&](int64_t number, ArrayRef<int64_t> index) { result->numbers[number] = source.at(index); });
  return result;
}

static TensorRef insertSlice(tensor::InsertSliceOp op, const Tensor &source, const Tensor &dest) {
  auto result = std::make_shared<Tensor>(dest);
  forEachOfSlice(
      op.getStaticOffsets(), op.getStaticSizes(), op.getStaticStrides(),
      [&](int64_t number, ArrayRef<int64_t> index) { result->at(index) = source.numbers[number]; });
  return result;
}

/// Null if the padding is no constant of all places.
static TensorRef pad(tensor::PadOp op, const Tensor &source, const Values &values) {
  Value padding = op.getConstantPaddingValue();
  if (!padding)
    return nullptr;
  auto result = std::make_shared<Tensor>(op.getType());
  Attribute constant;
  TensorRef outer = values.lookup(padding);
  Number number = matchPattern(padding, m_Constant(&constant))
                      ? constantTensor(padding.getType(), constant)->numbers.front()
                      : outer->numbers.front();
  std::fill(result->numbers.begin(), result->numbers.end(), number);
  SmallVector<int64_t> ones(source.shape.size(), 1);
  forEachOfSlice(op.getStaticLow(), source.shape, ones, [&](int64_t each, ArrayRef<int64_t> index) {
    result->at(index) = source.numbers[each];
  });
  return result;
}

/// Where in memory, by the dims of `physicalType`, an element of a logical tensor lies.
static SmallVector<int64_t> placeOf(LayoutAttr layout, ArrayRef<int64_t> index) {
  if (!layout)
    return SmallVector<int64_t>(index);
  SmallVector<int64_t> place;
  for (int64_t dim : layout.getOrder())
    place.push_back(dim == layout.getTileDim() ? index[dim] / layout.getTileSize() : index[dim]);
  if (isTiled(layout))
    place.push_back(index[layout.getTileDim()] % layout.getTileSize());
  return place;
}

/// From memory to the logical tensor in it or back; what pads memory is not known.
static TensorRef castLayout(Type from, Type to, const Tensor &source) {
  auto result = std::make_shared<Tensor>(to);
  LayoutAttr read = layoutOf(cast<RankedTensorType>(from));
  LayoutAttr written = layoutOf(cast<RankedTensorType>(to));
  ArrayRef<int64_t> logical = read ? source.shape : result->shape;
  forEachIndex(logical, [&](ArrayRef<int64_t> index) {
    result->at(read ? placeOf(read, index) : SmallVector<int64_t>(index)) =
        source.at(written ? placeOf(written, index) : SmallVector<int64_t>(index));
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Loops over steps
//===----------------------------------------------------------------------===//

/// What a function of steps takes of a sequence: the element of one step.
static TensorRef elementOf(const Tensor &sequence, Type type, int64_t step) {
  auto element = std::make_shared<Tensor>(type);
  std::copy_n(sequence.numbers.begin() + step * element->size(), element->size(),
              element->numbers.begin());
  return element;
}

namespace {
/// A loop on its way.
struct LoopRun {
  LoopOp op;
  Tensors state, sequences;
  SmallVector<std::shared_ptr<Tensor>> stacked;

  /// Calls `callee` with the elements of `factor` steps from `first` on.
  LogicalResult call(FlatSymbolRefAttr callee, int64_t first, int64_t factor,
                     ArrayRef<TensorRef> invariants);
};
} // namespace

LogicalResult LoopRun::call(FlatSymbolRefAttr callee, int64_t first, int64_t factor,
                            ArrayRef<TensorRef> invariants) {
  auto function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, callee);
  auto placeOf = [&](int64_t step) {
    return op.getReverse() ? op.getLength() - 1 - first - step : first + step;
  };
  Tensors arguments = state;
  for (const TensorRef &sequence : sequences)
    for (int64_t step = 0; step < factor; ++step)
      arguments.push_back(
          elementOf(*sequence, function.getArgumentTypes()[arguments.size()], placeOf(step)));
  arguments.append(invariants.begin(), invariants.end());
  FailureOr<Tensors> results = interpret(function, arguments);
  if (failed(results))
    return failure();
  state.assign(results->begin(), results->begin() + state.size());
  auto output = results->begin() + state.size();
  for (const auto &all : stacked)
    for (int64_t step = 0; step < factor; ++step, ++output)
      std::copy((*output)->numbers.begin(), (*output)->numbers.end(),
                all->numbers.begin() + placeOf(step) * (*output)->size());
  return success();
}

static FailureOr<Tensors> runLoop(LoopOp op, const Values &values) {
  auto tensorsOf = [&](ValueRange range) {
    return llvm::map_to_vector(range, [&](Value value) { return values.lookup(value); });
  };
  LoopRun run{op, tensorsOf(op.getInits()), tensorsOf(op.getSequences()), {}};
  for (Value result : op.getStacked())
    run.stacked.push_back(std::make_shared<Tensor>(result.getType()));
  Tensors invariants = tensorsOf(op.getInvariants());
  Tensors restInvariants = tensorsOf(op.getRestInvariants());
  int64_t step = 0, length = op.getLength(), factor = op.getFactor();
  for (; step + factor <= length; step += factor)
    if (failed(run.call(op.getStepAttr(), step, factor, invariants)))
      return failure();
  for (; step < length; ++step)
    if (failed(run.call(op.getRestAttr(), step, 1, restInvariants)))
      return failure();
  Tensors results = run.state;
  results.append(run.stacked.begin(), run.stacked.end());
  return results;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// An op of arith or math on scalars, or on the elements of tensors. Null if it is none.
static TensorRef runScalar(Operation *op, ArrayRef<TensorRef> operands) {
  if (op->getNumResults() != 1 || isa<RankedTensorType>(op->getResult(0).getType()))
    return nullptr;
  Computation computation = scalarOperation(op);
  if (!computation)
    return nullptr;
  SmallVector<Number> numbers;
  for (const TensorRef &operand : operands)
    numbers.push_back(operand->numbers.front());
  auto result = std::make_shared<Tensor>(op->getResult(0).getType());
  result->numbers.front() = computation(numbers.data());
  return result;
}

static LogicalResult checkAssert(AssertOp op, const Tensor &condition) {
  for (const Number &number : condition.numbers)
    if (number.error == 0 && !number.integer)
      return op.emitError("the assert fails in the reference");
  return success();
}

/// An op with one result that is a view or a copy of operands; null if it is none.
static TensorRef runMove(Operation *op, ArrayRef<TensorRef> x, const Values &values) {
  auto type = op->getNumResults() == 1 ? op->getResult(0).getType() : Type();
  return TypeSwitch<Operation *, TensorRef>(op)
      .Case([&](tensor::EmptyOp) { return std::make_shared<Tensor>(type); })
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
          [&](auto) { return reshaped(type, *x[0]); })
      .Case([&](tensor::ExtractSliceOp slice) { return extractSlice(slice, *x[0]); })
      .Case([&](tensor::InsertSliceOp slice) { return insertSlice(slice, *x[0], *x[1]); })
      .Case([&](tensor::PadOp padded) { return pad(padded, *x[0], values); })
      .Case([&](UnrealizedConversionCastOp cast) {
        return castLayout(cast.getOperand(0).getType(), type, *x[0]);
      })
      .Default([](Operation *) { return nullptr; });
}

static FailureOr<Tensors> runOp(Operation *op, const Values &values) {
  Attribute constant;
  if (matchPattern(op, m_Constant(&constant)))
    return Tensors{constantTensor(op->getResult(0).getType(), constant)};
  if (auto loop = dyn_cast<LoopOp>(op))
    return runLoop(loop, values);
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return runLinalg(structured, values);
  auto operands =
      llvm::map_to_vector(op->getOperands(), [&](Value value) { return values.lookup(value); });
  if (auto assertion = dyn_cast<AssertOp>(op))
    return failed(checkAssert(assertion, *operands[0])) ? FailureOr<Tensors>() : Tensors{};
  if (auto call = dyn_cast<func::CallOp>(op))
    return interpret(SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, call.getCalleeAttr()),
                     operands);
  if (TensorRef moved = runMove(op, operands, values))
    return Tensors{moved};
  if (TensorRef computed = runScalar(op, operands))
    return Tensors{computed};
  if (std::optional<Tensors> results = runWhole(op, operands))
    return std::move(*results);
  return op->emitError("the reference does not know this op");
}
