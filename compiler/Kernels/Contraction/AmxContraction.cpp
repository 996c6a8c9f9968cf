// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/AmxTileLoads.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

static constexpr int64_t sumsOfPanel = AmxContraction::blockRows * AmxContraction::blockLanes;
static constexpr int64_t sumsStride = AmxContraction::blockLanes * 4;
static constexpr int64_t bfloatBytes = 2;

/// Word offset of a part's tile within a packed unit step. Tiles are stored in the order in which
/// `products` reads them, as hardware prefetchers follow ascending addresses.
int64_t AmxContraction::vectorPartOffset(int64_t part, int64_t group) const {
  return ((parts - 1 - part) * 2 + group) * registerWords;
}

/// Words of one unit step: two registers for each part.
int64_t AmxContraction::stepWords() const { return parts * 2 * registerWords; }

/// The stage length, at most `longest`, that divides `steps` most evenly: a short stage would not
/// give enough time to split the rows of the long one after it.
static int64_t evenStage(int64_t steps, int64_t longest) {
  return llvm::divideCeil(steps, llvm::divideCeil(steps, longest));
}

AmxContraction::AmxContraction(KernelFunction &kernel, ElementEmitter &point, Location loc,
                               const ContractionRoles &roles, ArrayRef<unsigned> reduced,
                               int64_t panels, int64_t longestChunk)
    : IndexArithmetic(kernel.builder, loc), point(point), roles(roles), reduced(reduced),
      rowCount(point.space.count(roles.outerRows) * point.space.extent(*roles.row)),
      transposes(point.space.coefficientOf(roles.scalars.position, reduced.back()) != 1),
      pieceRows(transposes ? transposedRows
                           : int64_t(llvm::PowerOf2Ceil(llvm::divideCeil(blockRows, panels)))),
      parts(getElementTypeOrSelf(roles.scalars.memory.getType()).isF32() ? 3 : 1),
      readsInPlace(!splits() && !transposes && roles.outerRows.empty() && reduced.size() == 1 &&
                   rowCount % blockRows == 0 && longestChunk % unitSteps == 0 &&
                   point.space.extent(reduced.back()) % unitSteps == 0),
      stageSteps(evenStage(point.space.count(reduced.drop_back()) *
                               llvm::divideCeil(longestChunk, unitSteps),
                           splits() ? 4 : 16)),
      unit(builder, loc), nonzeros(builder, loc, lanesOfVector, MagnitudeWatch::Apart),
      allNumbers(builder, loc, lanesOfVector, MagnitudeWatch::Count),
      operand(
          VectorType::get({lanesOfVector}, getElementTypeOrSelf(roles.scalars.memory.getType()))),
      floats(VectorType::get({lanesOfVector}, builder.getF32Type())),
      words(VectorType::get({lanesOfVector}, builder.getI32Type())) {
  Type word = builder.getI32Type(), number = builder.getF32Type();
  int64_t steps =
      point.space.count(reduced.drop_back()) * llvm::divideCeil(longestChunk, unitSteps);
  vectorParts = kernel.scratch(word, panels * steps * stepWords());
  if (!readsInPlace) {
    rowParts = kernel.scratch(word, 2 * stageSteps * stepWords());
    rowStarts = kernel.stackTile(builder.getIndexType(), 2 * blockRows);
  }
  sums = kernel.scratch(number, panels * sumsOfPanel);
  stageSums = kernel.scratch(number, sumsOfPanel);
  panelWatch = kernel.scratch(word, panels * watchWords);
  if (transposes)
    squares = kernel.stackTile(word, 3 * registerWords);
  rowWatch = kernel.stackTile(word, 2 * watchWords);
  unit.configure(kernel.stackTile(word, lanesOfVector));
}

Value AmxContraction::parityOf(Value rowBlock) {
  return arith::AndIOp::create(builder, loc, rowBlock, constant(1));
}

AmxContraction::Watch AmxContraction::beginWatch() { return splits() ? nonzeros.begin() : Watch(); }

AmxContraction::Watch AmxContraction::loadWatch(Value memory, Value slot) {
  Watch state;
  for (int64_t i : llvm::seq(splits() ? 2 : 0))
    state.push_back(vector::LoadOp::create(builder, loc, words, memory,
                                           add(times(slot, watchWords), i * lanesOfVector)));
  return state;
}

void AmxContraction::storeWatch(ArrayRef<Value> state, Value memory, Value slot) {
  for (auto [i, each] : llvm::enumerate(state))
    vector::StoreOp::create(builder, loc, each, memory,
                            add(times(slot, watchWords), int64_t(i) * lanesOfVector));
}

Bf16Split AmxContraction::splitWatched(Value numbers, MutableArrayRef<Value> state) {
  if (splits())
    nonzeros.see(state, numbers);
  return splitFloat(builder, loc, numbers);
}

Value AmxContraction::unitStepsOf(Value stage) {
  if (chunkSteps % stageSteps == 0)
    return constant(stageSteps);
  Value left = subtract(constant(chunkSteps), times(stage, stageSteps));
  return least(left, constant(stageSteps));
}

AmxContraction::Stage AmxContraction::following(const Stage &stage) {
  Value next = add(stage.number, 1);
  Value over = is(arith::CmpIPredicate::eq, next, constant(stages));
  Value number = arith::SelectOp::create(builder, loc, over, constant(0), next);
  Value rowBlock =
      arith::SelectOp::create(builder, loc, over, add(stage.rowBlock, 1), stage.rowBlock);
  Value buffer = arith::XOrIOp::create(builder, loc, stage.buffer, constant(1));
  return {rowBlock, number, buffer};
}

/// Sets the point's outer reduced dims from the number of a unit step; returns the offset of the
/// step along the innermost reduced dim, relative to the chunk.
Value AmxContraction::splitOuterSteps(Value unitStep) {
  Value outer = unitStep, inner = unitStep;
  if (reduced.size() > 1) {
    outer = dividedBy(unitStep, innerSteps);
    inner = remainderOf(unitStep, innerSteps);
  }
  for (unsigned dim : llvm::reverse(reduced.drop_back())) {
    point.setDim(dim, remainderOf(outer, point.space.extent(dim)));
    outer = dividedBy(outer, point.space.extent(dim));
  }
  return times(inner, unitSteps);
}

/// Products of one unit step: six of parts (one for bfloat16) for each of the 2x2 accumulator
/// tiles. `besides` is called with the number of each product and their count, to interleave vector
/// work that overlaps with AMX.
void AmxContraction::multiplyStep(Value rowBytes, Value vectorBytes,
                                  llvm::function_ref<void(int64_t, int64_t)> besides) {
  constexpr int firstRows = 4, firstVectors = 6;
  Value rowAddress =
      unit.addressOf(readsInPlace ? point.getBuffer(roles.scalars.memory)->flat : rowParts);
  Value vectorAddress = unit.addressOf(vectorParts);
  auto loadRows = [&](int half, int64_t part) {
    int64_t stride = readsInPlace ? rowStride() * bfloatBytes : AmxTile::rowBytes;
    int64_t offset = (part * 2 + half) * AmxTile::rows * stride;
    unit.load(firstRows + half, rowAddress, add(rowBytes, offset), stride);
  };
  auto loadVectors = [&](int group, int64_t part) {
    int64_t offset = vectorPartOffset(part, group) * 4;
    unit.load(firstVectors + group, vectorAddress, add(vectorBytes, offset), AmxTile::rowBytes);
  };
  auto multiply = [&](int half, int group) {
    unit.multiply(2 * half + group, firstRows + half, firstVectors + group);
  };
  struct Product {
    int rows, vectors; ///< parts
  };
  // Smallest products first, and one operand is reused where possible. A tile is reloaded as soon
  // as the last product that reads it has issued.
  static constexpr Product products[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}};
  ArrayRef<Product> wanted = ArrayRef(products).take_back(splits() ? std::size(products) : 1);
  auto count = int64_t(wanted.size());
  Product loaded{-1, -1};
  for (auto [i, product] : llvm::enumerate(wanted)) {
    bool newRows = product.rows != loaded.rows, newVectors = product.vectors != loaded.vectors;
    loaded = product;
    if (newRows)
      loadRows(0, product.rows);
    if (newVectors)
      loadVectors(0, product.vectors);
    multiply(0, 0);
    if (newVectors && !newRows)
      multiply(1, 0);
    if (newVectors)
      loadVectors(1, product.vectors);
    multiply(0, 1);
    if (newRows) {
      loadRows(1, product.rows);
      multiply(1, 0);
    }
    multiply(1, 1);
    besides(int64_t(i), count);
  }
}

/// Products of one unit step, interleaved with splitting rows of the next stage from number `from`
/// on.
void AmxContraction::multiplyWhileSplitting(Value rowBytes, Value vectorBytes, const Stage &next,
                                            Value from) {
  withSplitter(next, from, [&](RowSplitter &rows) {
    multiplyStep(rowBytes, vectorBytes, [&](int64_t product, int64_t count) {
      for (int64_t row : llvm::seq(pieceRows * product / count, pieceRows * (product + 1) / count))
        rows.split(row);
    });
    rows.finish();
  });
}

/// All panels of one stage, overlapped with splitting the rows of the next.
void AmxContraction::multiplyStage(const Stage &stage, const Stage &next, Value hasNext) {
  int64_t stepBytes = stepWords() * 4;
  Value steps = unitStepsOf(stage.number);
  Value nextRows = times(unitStepsOf(next.number), blockRows);
  nextRows = arith::SelectOp::create(builder, loc, hasNext, nextRows, constant(0));
  Value firstStep = times(stage.number, stageSteps);
  Value firstRow =
      readsInPlace ? add(rowStart(times(stage.rowBlock, blockRows)), chunkStart) : Value();
  auto multiply = [&](Value number, Value unitStep) {
    Value inPanel = add(firstStep, unitStep);
    Value rowBytes = readsInPlace
                         ? times(add(firstRow, times(inPanel, unitSteps)), bfloatBytes)
                         : times(add(times(stage.buffer, stageSteps), unitStep), stepBytes);
    Value vectorBytes = times(add(times(number, chunkSteps), inPanel), stepBytes);
    Value from =
        times(add(arith::MulIOp::create(builder, loc, number, steps), unitStep), pieceRows);
    emitIf(
        builder, loc, is(arith::CmpIPredicate::ult, from, nextRows),
        [&] { multiplyWhileSplitting(rowBytes, vectorBytes, next, from); },
        [&] { multiplyStep(rowBytes, vectorBytes, [](int64_t, int64_t) {}); });
  };
  emitLoop(builder, loc, constant(0), block.count, 1, {}, [&](Value number, ValueRange) {
    beginSums(number, stage.number);
    emitLoop(builder, loc, constant(0), steps, 1, {}, [&](Value unitStep, ValueRange) {
      multiply(number, unitStep);
      return SmallVector<Value>();
    });
    storeSums(number, stage.number);
    return SmallVector<Value>();
  });
  // Rows that the products of too few panels could not overlap with.
  emitIf(builder, loc, hasNext, [&] {
    splitStage(next, times(arith::MulIOp::create(builder, loc, block.count, steps), pieceRows));
  });
}

/// Emits `body` with each tile of a panel's sums, and how many bytes into them it begins.
static void forTilesOfSums(llvm::function_ref<void(int, int64_t)> body) {
  for (int half : llvm::seq(2))
    for (int group : llvm::seq(2))
      body(2 * half + group, half * AmxTile::rows * sumsStride + group * AmxTile::rowBytes);
}

/// The products of float32's parts are summed anew in each stage; those of bfloat16, which
/// PyTorch's library sums in one chain, go on where the stage before has left them.
void AmxContraction::beginSums(Value number, Value stage) {
  auto zero = [&] {
    for (int each : llvm::seq(4))
      unit.zero(each);
  };
  if (splits() || stages == 1) {
    zero();
    return;
  }
  emitIf(builder, loc, is(arith::CmpIPredicate::eq, stage, constant(0)), zero, [&] {
    Value address = unit.addressOf(sums), panelBytes = times(number, sumsOfPanel * 4);
    forTilesOfSums([&](int tile, int64_t place) {
      unit.load(tile, address, add(panelBytes, place), sumsStride);
    });
  });
}

/// Of float32, the sums of the first stage initialise the block's, those of later stages are added.
void AmxContraction::storeSums(Value number, Value stage) {
  auto store = [&](Value memory, Value bytes) {
    Value address = unit.addressOf(memory);
    forTilesOfSums(
        [&](int tile, int64_t place) { unit.store(tile, address, add(bytes, place), sumsStride); });
  };
  Value panelStart = times(number, sumsOfPanel);
  if (!splits() || stages == 1) {
    store(sums, times(panelStart, 4));
    return;
  }
  Value isFirst = is(arith::CmpIPredicate::eq, stage, constant(0));
  auto join = [&] {
    store(stageSums, constant(0));
    emitLoop(builder, loc, 0, sumsOfPanel, 2 * blockLanes, {}, [&](Value start, ValueRange) {
      for (int64_t lane = 0; lane < 2 * blockLanes; lane += lanesOfVector) {
        Value source = add(start, lane), target = add(panelStart, source);
        Value now = vector::LoadOp::create(builder, loc, floats, stageSums, source);
        Value before = vector::LoadOp::create(builder, loc, floats, sums, target);
        Value sum = arith::AddFOp::create(builder, loc, before, now);
        vector::StoreOp::create(builder, loc, sum, sums, target);
      }
      return SmallVector<Value>();
    });
  };
  emitIf(builder, loc, isFirst, [&] { store(sums, times(panelStart, 4)); }, join);
}

/// Whether a panel's sums for a block of rows are as accurate as float32. AMX flushes parts and
/// products below 2^-126, and splitting flushes inputs below 2^-100. Either all nonzero inputs and
/// results are large enough for nothing to be flushed, or all results are at least 2^-40 and all
/// inputs below 2^14, so that what was flushed is below their rounding error. Results that are not
/// finite are never trusted.
Value AmxContraction::isExact(Value number, const Watch &ofRows) {
  constexpr int smallestResult = -80, showingResult = -40, largestInput = 14, finite = 128;
  Value panelStart = times(number, sumsOfPanel);
  SmallVector<Value> begin;
  for (MagnitudeWatch *watch : {&nonzeros, &allNumbers})
    llvm::append_range(begin, watch->begin());
  SmallVector<Value> results =
      emitLoop(builder, loc, 0, sumsOfPanel, blockLanes, begin, [&](Value row, ValueRange now) {
        SmallVector<Value> next(now);
        for (int64_t lane = 0; lane < blockLanes; lane += lanesOfVector) {
          Value place = add(add(panelStart, row), lane);
          Value vector = vector::LoadOp::create(builder, loc, floats, sums, place);
          nonzeros.see(MutableArrayRef(next).take_front(2), vector);
          allNumbers.see(MutableArrayRef(next).drop_front(2), vector);
        }
        return next;
      });
  ArrayRef<Value> nonzeroResults = ArrayRef(results).take_front(2),
                  allResults = ArrayRef(results).drop_front(2);
  Watch ofPanel = loadWatch(panelWatch, number);
  auto all = [&](ArrayRef<Value> conditions) {
    Value both = conditions.front();
    for (Value each : conditions.drop_front())
      both = arith::AndIOp::create(builder, loc, both, each);
    return both;
  };
  Value nothingLost = all({nonzeros.reach(ofRows, smallestSplitExponent),
                           nonzeros.reach(ofPanel, smallestSplitExponent),
                           nonzeros.reach(nonzeroResults, smallestResult)});
  Value nothingShows =
      all({nonzeros.below(ofRows, largestInput), nonzeros.below(ofPanel, largestInput),
           allNumbers.reach(allResults, showingResult)});
  Value good = arith::OrIOp::create(builder, loc, nothingLost, nothingShows);
  return all({good, allNumbers.below(allResults, finite)});
}

/// Stores a block's sums, or recomputes on the vector units the panels that are not exact. bfloat16
/// needs no such check.
void AmxContraction::finish(Value rowBlock) {
  const Surroundings &surroundings = *block.surroundings;
  Value firstRow = times(rowBlock, blockRows);
  Value left = subtract(constant(rowCount), firstRow);
  Value rows = least(left, constant(blockRows));
  auto store = [&](Value panel, Value number) {
    Value panelStart = times(number, sumsOfPanel);
    surroundings.atPanel(panel, [&] {
      emitLoop(builder, loc, constant(0), rows, 1, {}, [&](Value row, ValueRange) {
        Value start = add(panelStart, times(row, blockLanes));
        SmallVector<Value> lanes;
        for (int64_t group : llvm::seq(point.getLanes().groups))
          lanes.push_back(vector::LoadOp::create(builder, loc, floats, sums,
                                                 add(start, group * lanesOfVector)));
        surroundings.atRow(add(firstRow, row));
        surroundings.storeRow(lanes);
        return SmallVector<Value>();
      });
    });
  };
  Watch ofRows = loadWatch(rowWatch, parityOf(rowBlock));
  emitLoop(builder, loc, constant(0), block.count, 1, {}, [&](Value number, ValueRange) {
    Value panel = add(block.panel, number);
    if (splits())
      emitIf(
          builder, loc, isExact(number, ofRows), [&] { store(panel, number); },
          [&] { surroundings.byVectors(panel, firstRow, rows); });
    else
      store(panel, number);
    return SmallVector<Value>();
  });
}

void AmxContraction::multiplyBlock() {
  Value zero = constant(0);
  findRows(block.low);
  storeWatch(beginWatch(), rowWatch, parityOf(block.low));
  splitStage({block.low, zero, zero}, zero);
  emitLoop(builder, loc, block.low, block.high, 1, zero, [&](Value rowBlock, ValueRange outer) {
    Value nextBlock = add(rowBlock, 1);
    storeWatch(beginWatch(), rowWatch, parityOf(nextBlock));
    findRows(nextBlock);
    SmallVector<Value> buffer =
        emitLoop(builder, loc, 0, stages, 1, outer, [&](Value number, ValueRange now) {
          Stage stage{rowBlock, number, now.front()};
          Stage next = following(stage);
          Value hasNext = is(arith::CmpIPredicate::ult, next.rowBlock, block.high);
          multiplyStage(stage, next, hasNext);
          return SmallVector<Value>{next.buffer};
        });
    finish(rowBlock);
    return buffer;
  });
}

void AmxContraction::emit(Value panel, Value panelEnd, Value low, Value high, Value chunkStart,
                          int64_t chunkSize, const Surroundings &surroundings) {
  this->chunkStart = chunkStart;
  this->chunkSize = chunkSize;
  innerSteps = llvm::divideCeil(chunkSize, unitSteps);
  chunkSteps = point.space.count(reduced.drop_back()) * innerSteps;
  stages = llvm::divideCeil(chunkSteps, stageSteps);
  Value count = subtract(panelEnd, panel);
  block = {panel, count, low, high, &surroundings};
  emitIf(builder, loc, is(arith::CmpIPredicate::ult, low, high), [&] {
    splitVectors();
    multiplyBlock();
  });
}
