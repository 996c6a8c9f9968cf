// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops of an entry. What a step passes to the next is passed by address: a state has two buffers,
// which steps write in turns, or is the row of a stacked output. So no step copies a state.
#include "compiler/Lowering/Entries/EntryIR.h"
#include "compiler/Lowering/Entries/EntryRewriter.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace weft;

namespace {

/// Where the steps of a loop leave a state.
struct LoopState {
  int output;        ///< in the rows of this stacked output; -1 if it has buffers of its own:
  Value last, other; ///< written in turns, so that the last step writes `last`
};

} // namespace

/// Element `row` of a buffer whose first dim is the sequence.
static Value rowOf(OpBuilder &builder, Location loc, Value buffer, Value row) {
  auto type = cast<MemRefType>(buffer.getType());
  auto rowType = MemRefType::get(type.getShape().drop_front(), type.getElementType());
  auto bytesType = MemRefType::get({byteSize(type)}, builder.getI8Type());
  Value bytes = UnrealizedConversionCastOp::create(builder, loc, bytesType, buffer).getResult(0);
  Value size = arith::ConstantIndexOp::create(builder, loc, byteSize(rowType));
  Value start = arith::MulIOp::create(builder, loc, row, size);
  return memref::ViewOp::create(builder, loc, rowType, bytes, start, ValueRange());
}

/// The stacked output that is state `number` of each step, or -1. A value has one place only: of
/// two states that are one value, the second is copied.
static int stackedLike(func::ReturnOp exit, unsigned number, unsigned carried) {
  Value value = exit.getOperand(number);
  if (!value.getDefiningOp<func::CallOp>())
    return -1;
  if (llvm::is_contained(exit.getOperands().take_front(number), value))
    return -1;
  ValueRange outputs = exit.getOperands().drop_front(carried);
  auto found = llvm::find(outputs, value);
  return found == outputs.end() ? -1 : std::distance(outputs.begin(), found);
}

static Value parityOf(OpBuilder &builder, Location loc, Value index) {
  if (std::optional<int64_t> known = getConstantIntValue(index))
    return arith::ConstantIndexOp::create(builder, loc, *known % 2);
  Value two = arith::ConstantIndexOp::create(builder, loc, 2);
  return arith::RemUIOp::create(builder, loc, index, two);
}

/// The buffer of `state` that step `index` writes. `lastParity`: of the last step's index.
static Value inTurns(OpBuilder &builder, Location loc, const LoopState &state, Value index,
                     Value lastParity) {
  Value isLike = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       parityOf(builder, loc, index), lastParity);
  return arith::SelectOp::create(builder, loc, isLike, state.last, state.other);
}

/// How many steps a call of the entry runs, from one to all.
Value EntryRewriter::stepsOf(LoopOp loop) {
  Location loc = loop.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto counting = loop->getAttrOfType<DenseI64ArrayAttr>(attr::countingSteps);
  Value length = constant(loop.getLength());
  if (!sizes || !counting)
    return length;
  ArrayRef<int64_t> numbers = counting.asArrayRef();
  Value steps = constant(numbers.back());
  for (auto [symbol, coefficient] : llvm::enumerate(numbers.drop_back())) {
    if (coefficient == 0)
      continue;
    Value size = memref::LoadOp::create(builder, loc, sizes, constant(symbol));
    size = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), size);
    size = arith::MulIOp::create(builder, loc, size, constant(coefficient));
    steps = arith::AddIOp::create(builder, loc, steps, size);
  }
  steps = arith::MaxSIOp::create(builder, loc, steps, constant(1));
  return arith::MinSIOp::create(builder, loc, steps, length);
}

LogicalResult EntryRewriter::rewriteLoop(LoopOp loop) {
  auto step = symbols.lookup<func::FuncOp>(loop.getStep());
  auto exit = cast<func::ReturnOp>(step.front().getTerminator());
  Location loc = loop.getLoc();
  int64_t length = loop.getLength();
  unsigned carried = loop.getInits().size();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };

  SmallVector<Value> stacked;
  for (Value result : loop.getStacked())
    stacked.push_back(bufferFor(result));
  SmallVector<LoopState> states;
  for (auto [number, last] : llvm::enumerate(loop.getFinals())) {
    LoopState state;
    state.output = stackedLike(exit, number, carried);
    if (state.output < 0) {
      state.last = bufferFor(last);
      state.other = length == 1 ? state.last
                                : memref::AllocOp::create(builder, loc, memrefOf(last.getType()));
    }
    states.push_back(state);
  }

  Value zero = constant(0), end = stepsOf(loop), one = constant(1);
  std::optional<int64_t> known = getConstantIntValue(end);
  Value last = known ? constant(*known - 1) : arith::SubIOp::create(builder, loc, end, one);
  Value lastParity = parityOf(builder, loc, last);
  auto body = scf::ForOp::create(builder, loc, zero, end, one, buffersOf(loop.getInits()));
  OpBuilder::InsertPoint after = builder.saveInsertionPoint();
  // Without carried values the loop has made its terminator.
  if (carried == 0)
    body.getBody()->getTerminator()->erase();
  builder.setInsertionPointToEnd(body.getBody());
  Value index = body.getInductionVar();
  Value row =
      loop.getReverse() ? arith::SubIOp::create(builder, loc, last, index).getResult() : index;
  SmallVector<Value> inputs(body.getRegionIterArgs());
  for (Value sequence : buffersOf(loop.getSequences()))
    inputs.push_back(rowOf(builder, loc, sequence, row));
  llvm::append_range(inputs, buffersOf(loop.getInvariants()));
  for (auto [argument, buffer] : llvm::zip_equal(step.getArguments(), inputs))
    buffers[argument] = buffer;

  SmallVector<Value> rows;
  for (Value output : stacked)
    rows.push_back(rowOf(builder, loc, output, row));
  SmallVector<Value> places;
  for (const LoopState &state : states)
    places.push_back(state.output < 0 ? inTurns(builder, loc, state, index, lastParity)
                                      : rows[state.output]);
  llvm::append_range(places, rows);
  SmallVector<std::pair<Value, Value>> moves;
  for (auto [value, place] : llvm::zip_equal(exit.getOperands(), places)) {
    bool isMade = value.getDefiningOp<func::CallOp>() || value.getDefiningOp<LoopOp>();
    if (isMade && !buffers.contains(value))
      buffers[value] = place;
    else if (buffers.lookup(value) != place)
      moves.push_back({value, place});
  }
  for (Operation &op : step.front().without_terminator())
    if (failed(rewrite(&op)))
      return failure();
  for (auto [value, place] : moves)
    copy(lookUp(value), place);
  scf::YieldOp::create(builder, loc, ArrayRef(places).take_front(carried));
  builder.restoreInsertionPoint(after);

  for (auto [state, final] : llvm::zip_equal(states, loop.getFinals())) {
    if (state.output < 0)
      continue;
    Value lastRow = rowOf(builder, loc, stacked[state.output], loop.getReverse() ? zero : last);
    if (!buffers.try_emplace(final, lastRow).second) // the caller's, or an outer loop's
      copy(lastRow, buffers.lookup(final));
  }
  // The next loop over the function has places of its own.
  for (Operation &op : step.front())
    for (Value result : op.getResults())
      buffers.erase(result);
  return success();
}
