// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops of linalg: their bodies become lists of steps on numbered slots, run at every point.
#include "Interpreter.h"
#include "ScalarOps.h"
#include "compiler/Graph/AttributeNames.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weft;
using namespace weft::check;

namespace {

/// The body of an op: slots hold the block's arguments, then what is computed.
class Body {
public:
  /// Fails after a diagnostic at an op that is not known.
  LogicalResult build(Block &block, const Values &values);
  void run(ArrayRef<int64_t> point);

  SmallVector<Number> slots;
  SmallVector<unsigned> yielded;

private:
  LogicalResult addOp(Operation &op, const Values &values);
  LogicalResult addExtract(tensor::ExtractOp op, const Values &values);
  FailureOr<unsigned> slotOf(Value value, const Values &values);
  unsigned newSlot(Value value) {
    slots.emplace_back();
    return numbers[value] = slots.size() - 1;
  }

  llvm::DenseMap<Value, unsigned> numbers;
  SmallVector<std::function<void(ArrayRef<int64_t>)>> steps;
};

/// Where the elements of an operand are that the points of the loops read or write.
struct Access {
  Access(AffineMap map, const Tensor &tensor);
  int64_t offset(ArrayRef<int64_t> point) const;

  AffineMap map;
  SmallVector<int64_t> strides; ///< of the tensor
  SmallVector<int64_t> steps;   ///< of each loop, if the map is linear
  int64_t start = 0;
  bool isLinear;
};

} // namespace

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

FailureOr<unsigned> Body::slotOf(Value value, const Values &values) {
  if (auto found = numbers.find(value); found != numbers.end())
    return found->second;
  auto outer = values.find(value);
  if (outer == values.end() || outer->second->rank() != 0)
    return failure();
  unsigned slot = newSlot(value);
  slots[slot] = outer->second->numbers.front();
  return slot;
}

LogicalResult Body::addExtract(tensor::ExtractOp op, const Values &values) {
  TensorRef source = values.lookup(op.getTensor());
  SmallVector<unsigned> indices;
  for (Value index : op.getIndices()) {
    FailureOr<unsigned> slot = slotOf(index, values);
    if (failed(slot))
      return failure();
    indices.push_back(*slot);
  }
  if (!source)
    return failure();
  unsigned result = newSlot(op.getResult());
  steps.push_back([this, source, indices, result](ArrayRef<int64_t>) {
    SmallVector<int64_t> index;
    bool known = true;
    for (auto [slot, extent] : llvm::zip_equal(indices, source->shape)) {
      index.push_back(slots[slot].integer);
      known &= slots[slot].error == 0 && index.back() >= 0 && index.back() < extent;
    }
    slots[result] = known ? source->at(index) : Number{0, 0, undetermined};
  });
  return success();
}

LogicalResult Body::addOp(Operation &op, const Values &values) {
  Attribute constant;
  if (matchPattern(&op, m_Constant(&constant))) {
    unsigned slot = newSlot(op.getResult(0));
    if (auto real = dyn_cast<FloatAttr>(constant))
      slots[slot] = Number::ofReal(real.getValueAsDouble());
    else
      slots[slot] = Number::ofInteger(wrappedTo(
          op.getResult(0).getType(), cast<IntegerAttr>(constant).getValue().getSExtValue()));
    return success();
  }
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    unsigned slot = newSlot(index.getResult());
    steps.push_back([this, slot, dim = index.getDim()](ArrayRef<int64_t> point) {
      slots[slot] = Number::ofInteger(point[dim]);
    });
    return success();
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return addExtract(extract, values);
  Computation computation = scalarOperation(&op);
  if (!computation)
    return failure();
  SmallVector<unsigned, 3> operands;
  for (Value operand : op.getOperands()) {
    FailureOr<unsigned> slot = slotOf(operand, values);
    if (failed(slot))
      return failure();
    operands.push_back(*slot);
  }
  unsigned result = newSlot(op.getResult(0));
  steps.push_back([this, operands, result, computation](ArrayRef<int64_t>) {
    Number given[3];
    for (auto [index, slot] : llvm::enumerate(operands))
      given[index] = slots[slot];
    slots[result] = computation(given);
  });
  return success();
}

LogicalResult Body::build(Block &block, const Values &values) {
  for (BlockArgument argument : block.getArguments())
    newSlot(argument);
  for (Operation &op : block.without_terminator())
    if (failed(addOp(op, values)))
      return op.emitError("the reference does not know this op");
  for (Value value : block.getTerminator()->getOperands()) {
    FailureOr<unsigned> slot = slotOf(value, values);
    if (failed(slot))
      return block.getTerminator()->emitError("the reference does not know an operand");
    yielded.push_back(*slot);
  }
  return success();
}

void Body::run(ArrayRef<int64_t> point) {
  for (const auto &step : steps)
    step(point);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static bool isLinear(AffineExpr expr) {
  bool linear = true;
  expr.walk([&](AffineExpr part) {
    linear &= part.getKind() != AffineExprKind::FloorDiv &&
              part.getKind() != AffineExprKind::CeilDiv && part.getKind() != AffineExprKind::Mod;
  });
  return linear;
}

Access::Access(AffineMap map, const Tensor &tensor)
    : map(map), strides(tensor.strides()), isLinear(llvm::all_of(map.getResults(), ::isLinear)) {
  if (!isLinear)
    return;
  // The offset at the origin, and by how much a step of each loop moves it.
  auto at = [&](ArrayRef<int64_t> point) {
    int64_t offset = 0;
    for (auto [position, stride] : llvm::zip_equal(map.compose(point), strides))
      offset += position * stride;
    return offset;
  };
  SmallVector<int64_t> point(map.getNumDims(), 0);
  start = at(point);
  for (int64_t &position : point) {
    position = 1;
    steps.push_back(at(point) - start);
    position = 0;
  }
}

int64_t Access::offset(ArrayRef<int64_t> point) const {
  int64_t offset = start;
  if (isLinear) {
    for (auto [position, step] : llvm::zip_equal(point, steps))
      offset += position * step;
    return offset;
  }
  for (auto [position, stride] : llvm::zip_equal(map.compose(point), strides))
    offset += position * stride;
  return offset;
}

/// Whether a kernel may leave out what the point computes.
static bool isPadding(DenseI64ArrayAttr padded, ArrayRef<int64_t> point, ArrayRef<int64_t> ranges) {
  if (!padded)
    return false;
  ArrayRef<int64_t> loops = padded.asArrayRef();
  return point[loops[0]] * ranges[loops[1]] + point[loops[1]] >= loops[2];
}

FailureOr<Tensors> weft::check::runLinalg(linalg::LinalgOp op, const Values &values) {
  Body body;
  if (failed(body.build(*op.getBlock(), values)))
    return failure();
  SmallVector<TensorRef> read;
  SmallVector<std::shared_ptr<Tensor>> results;
  SmallVector<Access> accesses;
  for (OpOperand &operand : op->getOpOperands()) {
    TensorRef tensor = values.lookup(operand.get());
    if (op.isDpsInit(&operand)) {
      results.push_back(std::make_shared<Tensor>(*tensor));
      tensor = results.back();
    }
    read.push_back(tensor);
    accesses.emplace_back(op.getMatchingIndexingMap(&operand), *tensor);
  }
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  auto padded = op->getAttrOfType<DenseI64ArrayAttr>(attr::padded);
  size_t inputs = read.size() - results.size();
  SmallVector<int64_t> offsets(read.size());
  forEachIndex(ranges, [&](ArrayRef<int64_t> point) {
    for (auto [number, access] : llvm::enumerate(accesses)) {
      offsets[number] = access.offset(point);
      body.slots[number] = read[number]->numbers[offsets[number]];
    }
    body.run(point);
    bool isUnknown = isPadding(padded, point, ranges);
    for (auto [number, result] : llvm::enumerate(results)) {
      Number &stored = result->numbers[offsets[inputs + number]];
      stored = body.slots[body.yielded[number]];
      if (isUnknown)
        stored.error = undetermined;
    }
  });
  return Tensors(results.begin(), results.end());
}
