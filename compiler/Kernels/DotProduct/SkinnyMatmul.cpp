// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Skinny matmul: few rows by many columns, both contiguous along k. A vector holds a segment of k
// of each of several rows, so that a register tile takes all rows and a few columns, and little is
// left to reduce horizontally: row segments are packed once, column segments broadcast from their
// original layout. Sums of a block of columns stay in scratch over the chunks of k; then the
// epilogue, row by row.
#include "compiler/Kernels/Contraction/SiblingContractions.h"
#include "compiler/Kernels/DotProduct/HorizontalReduction.h"
#include "compiler/Kernels/DotProduct/SkinnyMatmulSchedule.h"
#include "compiler/Kernels/Emission/RegisterTranspose.h"
#include "compiler/Kernels/Emission/SteppedLoop.h"
#include "compiler/Kernels/Emission/WideningLoad.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {

class SkinnyMatmul : private IndexArithmetic {
public:
  using Match = SkinnyMatmulMatch;
  SkinnyMatmul(KernelFunction &kernel, SkinnyMatmulMatch matched, DictionaryAttr part)
      : IndexArithmetic(kernel.builder, matched.generic.getLoc()), kernel(kernel),
        match(std::move(matched)), generic(match.generic), space(match.space), dot(match.dot),
        point(kernel.elementEmitter(space)), schedule(readFields<SkinnyMatmulSchedule>(part)),
        type(VectorType::get({schedule.width}, match.elementType())) {}

  llvm::Error verify() const;
  void emit();
  bool storesOnce() const { return space.extent(dot.column) % schedule.block == 0; }

private:
  /// Steps of the sum, from `start` on.
  struct Chunk {
    Value start;
    int64_t size;
    bool isFirst;
  };
  /// Row vectors of a register tile, including the last row's if it is alone, and its columns.
  struct Tile {
    Value number, firstColumn, inBlock;
    int64_t groups;
    bool hasLast;
  };

  void copyRows();
  void copyGroup(Value number);
  void emitBlock(Value firstColumn);
  void emitChunk(Value firstColumn, const Chunk &chunk);
  void emitTile(const Tile &tile, const Chunk &chunk);
  void emitStep(const Tile &tile, Value step, int64_t steps, MutableArrayRef<Value> products);
  void emitLast(Value step, int64_t steps, MutableArrayRef<Value> products);
  Value loadSegment(Value address, int64_t valid);
  void addSums(const Tile &tile, const Chunk &chunk, ArrayRef<Value> products);
  void addSum(Value place, const Chunk &chunk, Value sum);
  void storeRows(Value firstColumn);

  int64_t rowCount() const { return space.extent(*dot.row); }
  bool lastIsAlone() const { return schedule.lastIsAlone(rowCount()); }
  int64_t groupCount() const { return schedule.groupsOf(rowCount()); }
  int64_t tileCount() const { return schedule.tilesOf(rowCount()); }
  /// Strides of the packed rows in elements: between segments, and between tiles.
  int64_t segmentPitch() const { return schedule.groups() * schedule.width; }
  int64_t tilePitch() const { return schedule.tilePitch(space.extent(dot.depth)); }
  int64_t sumsPitch() const { return llvm::alignTo(schedule.block, schedule.width); }

  KernelFunction &kernel;
  SkinnyMatmulMatch match;
  linalg::GenericOp generic;
  IndexSpace &space;
  const DotOperands &dot;
  ElementEmitter point;
  SkinnyMatmulSchedule schedule;
  VectorType type;
  Value rows; ///< scratch, [tile][segment of the sum][group][row][step]
  Value sums; ///< scratch, [row][column of the block]
};

} // namespace

llvm::Error SkinnyMatmul::verify() const {
  auto wrong = [](const char *format, auto... values) {
    return llvm::createStringError("schedule: " + llvm::formatv(format, values...).str());
  };
  if (schedule.segment >= schedule.width || schedule.width % schedule.segment != 0)
    return wrong("expected segment to be a part of {0} lanes, found {1}", schedule.width,
                 schedule.segment);
  if (schedule.rows % schedule.rowsOfVector() != 0)
    return wrong("expected rows to be a multiple of {0}, found {1}", schedule.rowsOfVector(),
                 schedule.rows);
  if (schedule.block % schedule.columns != 0 || schedule.block > match.problem.columns)
    return wrong("expected block to be a multiple of {0} of at most {1}, found {2}",
                 schedule.columns, match.problem.columns, schedule.block);
  if (schedule.chunk % schedule.width != 0)
    return wrong("expected chunk to be a multiple of {0}, found {1}", schedule.width,
                 schedule.chunk);
  return llvm::Error::success();
}

void SkinnyMatmul::emit() {
  int64_t columns = space.extent(dot.column);
  int64_t blocks = llvm::divideCeil(columns, schedule.block);
  rows = kernel.scratch(type.getElementType(), tileCount() * tilePitch());
  sums = kernel.scratch(type.getElementType(), tileCount() * schedule.rows * sumsPitch());
  // Every thread packs all rows, as chunks are claimed dynamically.
  if (kernel.isSerial())
    emitIf(builder, loc, is(arith::CmpIPredicate::eq, kernel.thread, constant(0)),
           [&] { copyRows(); });
  else
    copyRows();
  kernel.forEachPiece(blocks, schedule.claim, [&](Value number) {
    // The last block overlaps the one before: the shared columns are computed
    // twice, to the same values.
    Value first = times(number, schedule.block);
    emitBlock(least(first, constant(columns - schedule.block)));
  });
}

void SkinnyMatmul::copyRows() {
  emitLoop(builder, loc, 0, groupCount(), 1, {}, [&](Value number, ValueRange) {
    copyGroup(number);
    return SmallVector<Value>();
  });
}

/// Rows past the last repeat it, steps past the last are zero.
void SkinnyMatmul::copyGroup(Value number) {
  int64_t rowsOfVector = schedule.rowsOfVector(), depth = space.extent(dot.depth);
  SmallVector<Value> numbers;
  for (int64_t i : llvm::seq(rowsOfVector))
    numbers.push_back(least(add(times(number, rowsOfVector), i), constant(rowCount() - 1)));
  Value to = add(times(dividedBy(number, schedule.groups()), tilePitch()),
                 times(remainderOf(number, schedule.groups()), schedule.width));
  emitSteps(builder, loc, constant(depth), depth, schedule.width, {},
            [&](Value first, int64_t valid, Carried) {
              point.setDim(dot.depth, first);
              point.setLanes({int64_t(dot.depth), schedule.width, 1, valid});
              SmallVector<Value> vectors;
              for (Value row : numbers) {
                point.setDim(*dot.row, row);
                vectors.push_back(
                    loadVector(builder, loc, type, point.getBuffer(dot.rows.memory)->flat,
                               point.indexValue(dot.rows.position), point.validMask(0)));
              }
              point.setLanes(Lanes());
              Value place = add(to, times(first, segmentPitch() / schedule.segment));
              for (auto [i, part] : llvm::enumerate(transposeVectors(builder, loc, vectors)))
                vector::StoreOp::create(builder, loc, part, rows,
                                        add(place, int64_t(i) * segmentPitch()));
              return SmallVector<Value>();
            });
}

void SkinnyMatmul::emitBlock(Value firstColumn) {
  int64_t depth = space.extent(dot.depth), size = schedule.chunk;
  int64_t whole = depth / size * size;
  emitChunk(firstColumn, {constant(0), std::min(size, depth), /*isFirst=*/true});
  emitLoop(builder, loc, size, whole, size, {}, [&](Value start, ValueRange) {
    emitChunk(firstColumn, {start, size, /*isFirst=*/false});
    return SmallVector<Value>();
  });
  if (whole > 0 && whole < depth)
    emitChunk(firstColumn, {constant(whole), depth - whole, /*isFirst=*/false});
  storeRows(firstColumn);
}

void SkinnyMatmul::emitChunk(Value firstColumn, const Chunk &chunk) {
  int64_t whole = groupCount() / schedule.groups(), rest = groupCount() % schedule.groups();
  emitLoop(builder, loc, 0, schedule.block, schedule.columns, {}, [&](Value inBlock, ValueRange) {
    Value column = add(firstColumn, inBlock);
    emitLoop(builder, loc, 0, whole, 1, {}, [&](Value number, ValueRange) {
      emitTile({number, column, inBlock, schedule.groups(), /*hasLast=*/false}, chunk);
      return SmallVector<Value>();
    });
    if (rest || lastIsAlone())
      emitTile({constant(whole), column, inBlock, rest, lastIsAlone()}, chunk);
    return SmallVector<Value>();
  });
}

void SkinnyMatmul::emitTile(const Tile &tile, const Chunk &chunk) {
  SmallVector<Value> zeros((tile.groups + tile.hasLast) * schedule.columns,
                           emitSplat(builder, loc, type, 0.0));
  point.setDim(dot.column, tile.firstColumn);
  SmallVector<Value> products =
      emitSteps(builder, loc, constant(chunk.size), chunk.size, schedule.width, zeros,
                [&](Value offset, int64_t steps, Carried now) {
                  SmallVector<Value> next(now);
                  emitStep(tile, add(chunk.start, offset), steps, next);
                  return next;
                });
  addSums(tile, chunk, products);
}

/// sums[group][column] += vector of the group * segment of the column, for `steps` steps from
/// `step` on, at most a vector's; followed by the sums of a last row that is alone.
void SkinnyMatmul::emitStep(const Tile &tile, Value step, int64_t steps,
                            MutableArrayRef<Value> products) {
  point.setDim(dot.depth, step);
  Value from = point.indexValue(dot.columns.position);
  Value place =
      add(times(tile.number, tilePitch()), times(step, segmentPitch() / schedule.segment));
  if (schedule.prefetch)
    dot.emitFetch(point, schedule.columns, tile.number, tileCount(), CacheLevel::Second);
  if (tile.hasLast)
    emitLast(step, steps, products.drop_front(tile.groups * schedule.columns));
  for (int64_t done = 0; tile.groups > 0 && done < steps; done += schedule.segment) {
    SmallVector<Value> vectors;
    for (int64_t group : llvm::seq(tile.groups))
      vectors.push_back(vector::LoadOp::create(
          builder, loc, type, rows,
          add(place, done / schedule.segment * segmentPitch() + group * schedule.width)));
    for (int64_t column : llvm::seq(schedule.columns)) {
      Value segment = loadSegment(add(from, column * dot.columnStride(space) + done),
                                  std::min(schedule.segment, steps - done));
      for (int64_t group : llvm::seq(tile.groups)) {
        Value &sum = products[group * schedule.columns + column];
        sum = vector::FMAOp::create(builder, loc, segment, vectors[group], sum);
      }
    }
  }
}

/// sums[column] += the last row * the column, for `steps` steps from `step` on.
void SkinnyMatmul::emitLast(Value step, int64_t steps, MutableArrayRef<Value> products) {
  point.setDim(dot.depth, step);
  point.setDim(*dot.row, constant(rowCount() - 1));
  Value mask = maskOfFirst(builder, loc, steps, schedule.width);
  auto load = [&](const ContractionOperand &operand, Value address) {
    return loadVector(builder, loc, type, point.getBuffer(operand.memory)->flat, address, mask);
  };
  Value row = load(dot.rows, point.indexValue(dot.rows.position));
  Value from = point.indexValue(dot.columns.position);
  for (auto [column, sum] : llvm::enumerate(products))
    sum = vector::FMAOp::create(
        builder, loc, load(dot.columns, add(from, int64_t(column) * dot.columnStride(space))), row,
        sum);
}

/// Broadcasts the segment at `address`, of which `valid` steps exist, to every row of a vector.
Value SkinnyMatmul::loadSegment(Value address, int64_t valid) {
  Value memory = point.getBuffer(dot.columns.memory)->flat;
  auto narrow = VectorType::get({schedule.segment}, type.getElementType());
  Value mask = maskOfFirst(builder, loc, valid, schedule.segment);
  Value segment = loadVector(builder, loc, narrow, memory, address, mask);
  SmallVector<int64_t> lanes;
  for (int64_t lane : llvm::seq(schedule.width))
    lanes.push_back(lane % schedule.segment);
  return vector::ShuffleOp::create(builder, loc, segment, segment, lanes);
}

/// Adds the rows' sums to those of the chunks before. Sums of rows past the last are unused.
void SkinnyMatmul::addSums(const Tile &tile, const Chunk &chunk, ArrayRef<Value> products) {
  int64_t rowsOfTile = schedule.rows;
  Value first = add(times(tile.number, rowsOfTile * sumsPitch()), tile.inBlock);
  for (int64_t group : llvm::seq(tile.groups)) {
    auto ofGroup = products.slice(group * schedule.columns, schedule.columns);
    SmallVector<Value> ofRows = segmentSums(builder, loc, ofGroup, schedule.segment);
    for (auto [i, sum] : llvm::enumerate(ofRows)) {
      int64_t row = group * schedule.rowsOfVector() + int64_t(i);
      addSum(add(first, row * sumsPitch()), chunk, sum);
    }
  }
  if (tile.hasLast)
    addSum(add(tile.inBlock, (rowCount() - 1) * sumsPitch()), chunk,
           horizontalSums(builder, loc, products.take_back(schedule.columns)));
}

void SkinnyMatmul::addSum(Value place, const Chunk &chunk, Value sum) {
  if (!chunk.isFirst) {
    Value before =
        vector::LoadOp::create(builder, loc, cast<VectorType>(sum.getType()), sums, place);
    sum = arith::AddFOp::create(builder, loc, before, sum);
  }
  vector::StoreOp::create(builder, loc, sum, sums, place);
}

void SkinnyMatmul::storeRows(Value firstColumn) {
  int64_t vectors = sumsPitch() / schedule.width;
  point.setDim(dot.column, firstColumn);
  emitLoop(builder, loc, 0, rowCount(), 1, {}, [&](Value row, ValueRange) {
    point.setDim(*dot.row, row);
    point.forget();
    point.setLanes({int64_t(dot.column), schedule.width, vectors, schedule.block});
    Emitted ofRow{{}, false};
    for (int64_t i : llvm::seq(vectors))
      ofRow.parts.push_back(vector::LoadOp::create(
          builder, loc, type, sums, add(times(row, sumsPitch()), i * schedule.width)));
    storeRoots(kernel, point, match.roots, unroundedForms(kernel, generic->getResult(0)), ofRow);
    point.setLanes(Lanes());
    return SmallVector<Value>();
  });
}

LogicalResult weft::emitSkinnyMatmul(KernelFunction &kernel) {
  return emitSiblingContractions<SkinnyMatmul>(kernel);
}
