// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/AmxTileLoads.h"
#include "compiler/Kernels/Emission/Prefetch.h"
#include "compiler/Kernels/Emission/RegisterTranspose.h"
#include "compiler/Kernels/Emission/WideningLoad.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace weft;

/// Element offset of row `row` in A.
Value AmxContraction::rowStart(Value row) {
  block.surroundings->atRow(row);
  for (unsigned dim : reduced)
    point.setDim(dim, constant(0));
  return point.indexValue(roles.scalars.position);
}

/// Elements between consecutive rows of A.
int64_t AmxContraction::rowStride() const {
  return *point.space.coefficientOf(roles.scalars.position, *roles.row);
}

/// Computes the offset of each row of a block. Rows past the last one repeat it; they are not
/// stored.
void AmxContraction::findRows(Value rowBlock) {
  if (transposes || readsInPlace)
    return;
  Value first = times(rowBlock, blockRows), start = times(parityOf(rowBlock), blockRows);
  emitLoop(builder, loc, 0, blockRows, 1, {}, [&](Value row, ValueRange) {
    Value address = rowStart(least(add(first, row), constant(rowCount - 1)));
    memref::StoreOp::create(builder, loc, address, rowStarts, add(start, row));
    return SmallVector<Value>();
  });
}

/// Offset from the start of a row to unit step `unitStep`.
Value AmxContraction::rowOffsetOf(Value unitStep, Value &innerStart) {
  innerStart = splitOuterSteps(unitStep);
  Value offset = add(chunkStart, innerStart);
  for (unsigned dim : reduced.drop_back()) {
    Value variable = point.dimValue(dim);
    offset = add(offset, times(variable, *point.space.coefficientOf(roles.scalars.position, dim)));
  }
  return offset;
}

AmxContraction::RowSplitter::RowSplitter(AmxContraction &of, const Stage &stage, Value from)
    : of(of), builder(of.builder), loc(of.loc), rowBlock(stage.rowBlock),
      memory(of.point.getBuffer(of.roles.scalars.memory)->flat),
      watch(of.loadWatch(of.rowWatch, of.parityOf(rowBlock))) {
  Value unitStep = arith::ShRUIOp::create(builder, loc, from, of.constant(5));
  rowInBlock = arith::AndIOp::create(builder, loc, from, of.constant(blockRows - 1));
  offset = of.rowOffsetOf(of.add(of.times(stage.number, of.stageSteps), unitStep), innerStart);

  Value half = arith::ShRUIOp::create(builder, loc, rowInBlock, of.constant(4));
  Value rowInHalf = arith::AndIOp::create(builder, loc, rowInBlock, of.constant(15));
  target = of.add(of.times(stage.buffer, of.stageSteps), unitStep);
  target = of.add(of.times(target, of.parts * 2), half);
  target = of.add(of.times(target, registerWords), of.times(rowInHalf, lanesOfVector));
}

void AmxContraction::RowSplitter::store(Value words, int64_t row, int64_t part) {
  int64_t place = row / AmxTile::rows * registerWords + row % AmxTile::rows * lanesOfVector;
  vector::StoreOp::create(builder, loc, words, of.rowParts,
                          of.add(target, place + part * 2 * registerWords));
}

/// Rows that are contiguous along k: a piece is one row.
class AmxContraction::ContiguousSplitter : public RowSplitter {
public:
  ContiguousSplitter(AmxContraction &of, const Stage &stage, Value from)
      : RowSplitter(of, stage, from),
        firstStart(of.add(of.times(of.parityOf(rowBlock), blockRows), rowInBlock)),
        lineSteps(of.splits() ? lanesOfVector : unitSteps) {
    if (of.roles.outerRows.empty())
      ahead = distanceToFollowing(stage);
    if (of.chunkSize % unitSteps == 0)
      return;
    // Masks off the steps after the end of the chunk.
    Value left = arith::SubIOp::create(builder, loc, of.constant(of.chunkSize), innerStart);
    for (int64_t i : llvm::seq(unitSteps / lineSteps)) {
      Value here = arith::SubIOp::create(builder, loc, left, of.constant(i * lineSteps));
      masks[i] = vector::CreateMaskOp::create(
          builder, loc, VectorType::get({lineSteps}, builder.getI1Type()), here);
    }
  }

  void split(int64_t row) override {
    Value start = memref::LoadOp::create(builder, loc, of.rowStarts, of.add(firstStart, row));
    start = of.add(start, offset);
    for (int64_t line : llvm::seq(ahead ? unitSteps / lineSteps : 0))
      emitPrefetch(builder, loc, memory, of.add(of.add(start, ahead), line * lineSteps),
                   CacheLevel::Second);
    if (!of.splits()) { // bfloat16 rows need no split
      auto line = of.operand.cloneWith(lineSteps, of.operand.getElementType());
      Value numbers = loadVector(builder, loc, line, memory, start, masks.front());
      store(vector::BitCastOp::create(builder, loc, of.words, numbers), row, 0);
      return;
    }
    std::array<Bf16Split, 2> split;
    for (int64_t i : llvm::seq(2))
      split[i] = splitWatched(
          loadVector(builder, loc, of.operand, memory, of.add(start, i * lanesOfVector), masks[i]));
    for (int64_t part : llvm::seq(of.parts))
      store(joinLanes(builder, loc, split[0][part], split[1][part]), row, part);
  }

private:
  /// Elements from this stage's steps of a row to those that the following stage splits at the same
  /// position. A weight streams from memory, in runs too short for hardware prefetchers.
  Value distanceToFollowing(const Stage &stage) {
    Stage following = of.following(stage);
    Value blocks = arith::SubIOp::create(builder, loc, following.rowBlock, stage.rowBlock);
    Value stages = arith::SubIOp::create(builder, loc, following.number, stage.number);
    return of.add(of.times(blocks, blockRows * of.rowStride()),
                  of.times(stages, of.stageSteps * unitSteps));
  }

  Value firstStart, ahead;
  int64_t lineSteps; ///< steps of a vector, which is a cache line
  std::array<Value, 2> masks;
};

/// Rows that are contiguous across rows and strided along k. 16 rows of a unit step take two
/// passes: fill a square of words with pairs of steps, then store its columns.
class AmxContraction::TransposingSplitter : public RowSplitter {
public:
  enum Turn { Fill, Transpose };

  TransposingSplitter(AmxContraction &of, const Stage &stage, Value from, Turn turn)
      : RowSplitter(
            of, stage,
            arith::AndIOp::create(of.builder, of.loc, from, of.constant(~(AmxTile::rows - 1)))),
        turn(turn) {
    if (turn == Transpose)
      return;
    Value row = of.add(of.times(rowBlock, blockRows), rowInBlock);
    // The second half of a block may begin after the last row; its sums are not stored.
    if (of.rowCount % AmxTile::rows != 0) {
      Value left = arith::SubIOp::create(builder, loc, of.constant(of.rowCount), row);
      left = arith::MaxSIOp::create(builder, loc, left, of.constant(0));
      mask = vector::CreateMaskOp::create(builder, loc, of.words.cloneWith({}, builder.getI1Type()),
                                          left);
    } else if (of.rowCount % blockRows != 0) {
      row = of.least(row, of.constant(of.rowCount - AmxTile::rows));
    }
    start = addressOf(row, of.constant(0));
    // Every step is on its own page and cache line, which hardware prefetchers do not fetch in
    // time.
    Stage ahead = of.following(stage);
    Value stages = arith::SubIOp::create(builder, loc, ahead.number, stage.number);
    Value aheadStep = of.add(innerStart, of.times(stages, of.stageSteps * unitSteps));
    aheadStart = addressOf(of.add(of.times(ahead.rowBlock, blockRows), rowInBlock),
                           of.add(of.chunkStart, aheadStep));
  }

  void split(int64_t piece) override {
    constexpr int64_t pairs = unitSteps / 2, turns = transposedRows;
    if (turn == Fill)
      for (int64_t pair : llvm::seq(pairs * piece / turns, pairs * (piece + 1) / turns))
        fill(pair);
    else
      for (int64_t part : llvm::seq((of.parts * piece + turns - 1) / turns,
                                    (of.parts * (piece + 1) + turns - 1) / turns))
        transpose(part);
  }

private:
  Value squareRow(int64_t part, int64_t row) {
    return of.constant(part * registerWords + row * lanesOfVector);
  }

  void fill(int64_t pair) {
    Bf16Split lower = splitWatched(loadStep(2 * pair)),
              upper = splitWatched(loadStep(2 * pair + 1));
    for (int64_t part : llvm::seq(of.parts))
      vector::StoreOp::create(builder, loc, pairLanes(builder, loc, lower[part], upper[part]),
                              of.squares, squareRow(part, pair));
  }

  void transpose(int64_t part) {
    SmallVector<Value> square;
    for (int64_t row : llvm::seq(AmxTile::rows))
      square.push_back(
          vector::LoadOp::create(builder, loc, of.words, of.squares, squareRow(part, row)));
    for (auto [row, words] : llvm::enumerate(transposeVectors(builder, loc, square)))
      store(words, int64_t(row), part);
  }

  Value addressOf(Value row, Value step) {
    of.point.setDim(*of.roles.row, row);
    of.point.setDim(of.reduced.back(), step);
    return of.point.indexValue(of.roles.scalars.position);
  }

  Value loadStep(int64_t step) {
    int64_t stride = *of.point.space.coefficientOf(of.roles.scalars.position, of.reduced.back());
    emitPrefetch(builder, loc, memory, of.add(aheadStart, step * stride), CacheLevel::Second);
    Value inner = of.add(innerStart, step), inChunk = inner;
    bool whole = of.chunkSize % unitSteps == 0;
    if (!whole)
      inChunk = of.least(inner, of.constant(of.chunkSize - 1));
    Value address = of.add(start, of.times(of.add(of.chunkStart, inChunk), stride));
    Value numbers = loadVector(builder, loc, of.operand, memory, address, mask);
    if (whole)
      return numbers;
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(of.operand));
    return arith::SelectOp::create(builder, loc, of.is(arith::CmpIPredicate::eq, inner, inChunk),
                                   numbers, zero);
  }

  Turn turn;
  Value start, aheadStart, mask;
};

/// Rows that AMX loads directly from the operand are only prefetched.
class AmxContraction::RowFetcher : public RowSplitter {
public:
  RowFetcher(AmxContraction &of, const Stage &stage, Value from)
      : RowSplitter(of, stage, from),
        start(of.add(of.rowStart(of.add(of.times(rowBlock, blockRows), rowInBlock)), offset)) {}

  void split(int64_t row) override {
    emitPrefetch(builder, loc, memory, of.add(start, row * of.rowStride()), CacheLevel::Second);
  }

private:
  Value start;
};

/// Emits `body` with the splitter of the rows from number `from` on.
void AmxContraction::withSplitter(const Stage &stage, Value from,
                                  llvm::function_ref<void(RowSplitter &)> body) {
  if (readsInPlace) {
    RowFetcher fetcher(*this, stage, from);
    body(fetcher);
    return;
  }
  if (!transposes) {
    ContiguousSplitter splitter(*this, stage, from);
    body(splitter);
    return;
  }
  Value turn = arith::AndIOp::create(builder, loc, from, constant(transposedRows));
  auto take = [&](TransposingSplitter::Turn turn) {
    TransposingSplitter splitter(*this, stage, from, turn);
    body(splitter);
  };
  emitIf(
      builder, loc, is(arith::CmpIPredicate::eq, turn, constant(0)),
      [&] { take(TransposingSplitter::Fill); }, [&] { take(TransposingSplitter::Transpose); });
}

/// Splits the rows of a stage from number `from` on.
void AmxContraction::splitStage(const Stage &stage, Value from) {
  Value end = times(unitStepsOf(stage.number), blockRows);
  emitLoop(builder, loc, from, end, pieceRows, {}, [&](Value first, ValueRange) {
    withSplitter(stage, first, [&](RowSplitter &splitter) {
      for (int64_t piece : llvm::seq(pieceRows))
        splitter.split(piece);
      splitter.finish();
    });
    return SmallVector<Value>();
  });
}
