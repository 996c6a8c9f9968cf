// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops of an entry. What a step passes to the next is passed by address: a state has two buffers,
// which iterations write in turns, or is the row of a stacked output. So no step copies a state. An
// unrolled loop is two: one of several steps an iteration, and one of what is left.
#include "compiler/Lowering/Entries/EntryIR.h"
#include "compiler/Lowering/Entries/EntryRewriter.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace weft;

namespace {

/// Where the iterations of a loop leave a state.
struct LoopState {
  int output;        ///< in the rows of this stacked output; -1 if it has buffers of its own:
  Value last, other; ///< written in turns, so that the last iteration writes `last`
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

/// The stacked output whose last row of each iteration is state `number`, or -1. `factor`: rows of
/// an output in an iteration. A value has one place only: of two states that are one value, the
/// second is copied.
static int stackedLike(func::ReturnOp exit, unsigned number, unsigned carried, int64_t factor) {
  Value value = exit.getOperand(number);
  if (!value.getDefiningOp<func::CallOp>())
    return -1;
  if (llvm::is_contained(exit.getOperands().take_front(number), value))
    return -1;
  ValueRange outputs = exit.getOperands().drop_front(carried);
  auto found = llvm::find(outputs, value);
  auto row = std::distance(outputs.begin(), found);
  return found == outputs.end() || row % factor != factor - 1 ? -1 : row / factor;
}

static Value parityOf(OpBuilder &builder, Location loc, Value index) {
  if (std::optional<int64_t> known = getConstantIntValue(index))
    return arith::ConstantIndexOp::create(builder, loc, *known % 2);
  Value two = arith::ConstantIndexOp::create(builder, loc, 2);
  return arith::RemUIOp::create(builder, loc, index, two);
}

/// The buffer of `state` that iteration `index` writes. `lastParity`: of the last one's index.
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

namespace {

/// Index arithmetic of which constants stay constants.
struct IndexBuilder {
  OpBuilder &builder;
  Location loc;

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value add(Value a, Value b) {
    return fold<arith::AddIOp>(a, b, [](int64_t x, int64_t y) { return x + y; });
  }
  Value sub(Value a, Value b) {
    return fold<arith::SubIOp>(a, b, [](int64_t x, int64_t y) { return x - y; });
  }
  Value mul(Value a, int64_t factor) {
    if (factor == 1)
      return a;
    return fold<arith::MulIOp>(a, constant(factor), [](int64_t x, int64_t y) { return x * y; });
  }
  Value div(Value a, int64_t divisor) {
    if (divisor == 1)
      return a;
    return fold<arith::DivUIOp>(a, constant(divisor), [](int64_t x, int64_t y) { return x / y; });
  }

private:
  template <typename Op>
  Value fold(Value a, Value b, llvm::function_ref<int64_t(int64_t, int64_t)> compute) {
    std::optional<int64_t> x = getConstantIntValue(a), y = getConstantIntValue(b);
    return x && y ? constant(compute(*x, *y)) : Op::create(builder, loc, a, b).getResult();
  }
};

} // namespace

/// A loop of an entry while it is written.
struct weft::LoopFrame {
  LoopOp loop;
  SmallVector<Value> stacked; ///< the buffers of outputs
  SmallVector<LoopState> states;
  Value last;       ///< the last step
  Value lastParity; ///< of the index of the last iteration
};

/// The row of sequences and outputs that `step` reads and writes.
static Value rowAt(IndexBuilder index, const LoopFrame &frame, Value step) {
  return LoopOp(frame.loop).getReverse() ? index.sub(frame.last, step) : step;
}

/// Where `state` is after the iterations before `iteration`, which are those of the steps before
/// `step`; `init` where there are none.
static Value stateAhead(IndexBuilder index, const LoopFrame &frame, const LoopState &state,
                        Value iteration, Value step, Value init) {
  OpBuilder &builder = index.builder;
  Value zero = index.constant(0), one = index.constant(1), place;
  std::optional<int64_t> known = getConstantIntValue(iteration);
  if (known == 0)
    return init;
  if (state.output < 0) {
    place = inTurns(builder, index.loc, state, index.sub(iteration, one), frame.lastParity);
  } else {
    Value behind = index.sub(step, one);
    if (!known) // no address before the buffer's
      behind = arith::MaxSIOp::create(builder, index.loc, behind, zero);
    place = rowOf(builder, index.loc, frame.stacked[state.output], rowAt(index, frame, behind));
  }
  if (known)
    return place;
  Value isFirst =
      arith::CmpIOp::create(builder, index.loc, arith::CmpIPredicate::eq, iteration, zero);
  return arith::SelectOp::create(builder, index.loc, isFirst, init, place);
}

/// The loop over iterations `begin` to `end` of `factor` steps each, as `step` does them. The first
/// of iteration i is step i * factor + shift.
LogicalResult EntryRewriter::rewriteIterations(const LoopFrame &frame, func::FuncOp step,
                                               ValueRange invariants, int64_t factor, Value begin,
                                               Value end, Value shift, ArrayRef<Value> inits) {
  LoopOp loop = frame.loop;
  Location loc = loop.getLoc();
  IndexBuilder index{builder, loc};
  auto exit = cast<func::ReturnOp>(step.front().getTerminator());
  unsigned carried = inits.size();
  auto body = scf::ForOp::create(builder, loc, begin, end, index.constant(1), inits);
  OpBuilder::InsertPoint after = builder.saveInsertionPoint();
  // Without carried values the loop has made its terminator.
  if (carried == 0)
    body.getBody()->getTerminator()->erase();
  builder.setInsertionPointToEnd(body.getBody());
  Value iteration = body.getInductionVar(), first = index.mul(iteration, factor);
  if (getConstantIntValue(shift) != 0)
    first = index.add(first, shift);
  SmallVector<Value> rowNumbers;
  for (int64_t time : llvm::seq(factor))
    rowNumbers.push_back(
        rowAt(index, frame, time ? index.add(first, index.constant(time)) : first));
  SmallVector<Value> inputs(body.getRegionIterArgs()), rows;
  for (Value sequence : buffersOf(loop.getSequences()))
    for (Value row : rowNumbers)
      inputs.push_back(rowOf(builder, loc, sequence, row));
  llvm::append_range(inputs, buffersOf(invariants));
  for (auto [argument, buffer] : llvm::zip_equal(step.getArguments(), inputs))
    buffers[argument] = buffer;

  for (Value output : frame.stacked)
    for (Value row : rowNumbers)
      rows.push_back(rowOf(builder, loc, output, row));
  SmallVector<Value> places;
  for (const LoopState &state : frame.states)
    places.push_back(state.output < 0 ? inTurns(builder, loc, state, iteration, frame.lastParity)
                                      : rows[state.output * factor + factor - 1]);
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
  // The next loop over the function has places of its own.
  for (Operation &op : step.front())
    for (Value result : op.getResults())
      buffers.erase(result);
  return success();
}

LogicalResult EntryRewriter::rewriteLoop(LoopOp loop) {
  auto step = symbols.lookup<func::FuncOp>(loop.getStep());
  auto rest = loop.getRest() ? symbols.lookup<func::FuncOp>(*loop.getRest()) : func::FuncOp();
  Location loc = loop.getLoc();
  IndexBuilder index{builder, loc};
  int64_t factor = loop.getFactor();
  unsigned carried = loop.getInits().size();
  auto exitOf = [](func::FuncOp function) {
    return cast<func::ReturnOp>(function.front().getTerminator());
  };

  LoopFrame frame;
  frame.loop = loop;
  for (Value result : loop.getStacked())
    frame.stacked.push_back(bufferFor(result));
  for (auto [number, last] : llvm::enumerate(loop.getFinals())) {
    LoopState state;
    state.output = stackedLike(exitOf(step), number, carried, factor);
    if (rest && stackedLike(exitOf(rest), number, carried, 1) != state.output)
      state.output = -1;
    if (state.output < 0) {
      state.last = bufferFor(last);
      state.other = loop.getLength() == 1
                        ? state.last
                        : memref::AllocOp::create(builder, loc, memrefOf(last.getType()));
    }
    frame.states.push_back(state);
  }

  // Iterations of several steps, then those of one.
  Value zero = index.constant(0), one = index.constant(1), steps = stepsOf(loop);
  Value whole = index.div(steps, factor), whereRest = index.mul(whole, factor);
  Value iterations = rest ? index.add(whole, index.sub(steps, whereRest)) : whole;
  frame.last = index.sub(steps, one);
  frame.lastParity = parityOf(builder, loc, factor == 1 ? frame.last : index.sub(iterations, one));
  SmallVector<Value> inits = buffersOf(loop.getInits());
  if (failed(
          rewriteIterations(frame, step, loop.getInvariants(), factor, zero, whole, zero, inits)))
    return failure();
  if (rest) {
    for (auto [state, init] : llvm::zip_equal(frame.states, inits))
      init = stateAhead(index, frame, state, whole, whereRest, init);
    if (failed(rewriteIterations(frame, rest, loop.getRestInvariants(), 1, whole, iterations,
                                 index.sub(whereRest, whole), inits)))
      return failure();
  }

  for (auto [state, final] : llvm::zip_equal(frame.states, loop.getFinals())) {
    if (state.output < 0)
      continue;
    Value lastRow =
        rowOf(builder, loc, frame.stacked[state.output], loop.getReverse() ? zero : frame.last);
    if (!buffers.try_emplace(final, lastRow).second) // the caller's, or an outer loop's
      copy(lastRow, buffers.lookup(final));
  }
  return success();
}
