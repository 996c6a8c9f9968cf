// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Grouped matmul. Threads divide the columns of the result, which are the same for all groups, as
// the data decides how rows are divided. Blocks of a group's rows are packed into vector lanes; the
// group's matrix is broadcast element by element from its original layout, as in contractions. Sums
// of a block stay in scratch over the chunks of the reduction and are then transposed in registers
// and stored.
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/DotProduct/GroupedMatmulSchedule.h"
#include "compiler/Kernels/Emission/RegisterTranspose.h"
#include "compiler/Kernels/Emission/RowScratch.h"
#include "compiler/Kernels/Emission/SteppedLoop.h"
#include "compiler/Kernels/Emission/StoredIndex.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {

class GroupedMatmul : private IndexArithmetic {
public:
  GroupedMatmul(KernelFunction &kernel, GroupedDotOp op);

  LogicalResult match();
  void emit();

private:
  struct Block {
    Value first, count; ///< rows of the result
    int64_t vectors;    ///< vectors that hold the rows
  };

  Value columnOf(Value piece);
  Value endOf(Value group);
  void emitSlab(Value piece, Value pieceEnd);
  void emitBlocks(Value low, Value high, Value piece, Value pieceEnd);
  void emitBlock(const Block &block, Value piece, Value pieceEnd);
  void forEachPiece(Value piece, Value pieceEnd,
                    llvm::function_ref<void(Value piece, Value slabColumn)> body);
  void copyRows(const Block &block, Value start, int64_t steps);
  void emitChunk(const Block &block, Value start, int64_t steps, Value piece, Value pieceEnd);
  void emitTile(const Block &block, int64_t steps, Value column, Value slabColumn);
  void storeSums(const Block &block, Value piece, Value slabColumn);
  void storeZeros(Value piece, Value pieceEnd);

  /// Matrix rows in a register tile with `vectors` vectors of lanes; divides the columns of a
  /// piece.
  int64_t tileRows(int64_t vectors) const {
    return vectors < mostVectors ? schedule.narrowRows : schedule.rows;
  }
  void set(AffineExpr dim, Value value) { point.setDim(dimOf(dim), value); }
  unsigned dimOf(AffineExpr dim) const { return cast<AffineDimExpr>(dim).getPosition(); }

  KernelFunction &kernel;
  GroupedDotOp op;
  IndexSpace space;
  ElementEmitter point;

  VectorType type;
  GroupedMatmulSchedule schedule;
  int64_t width, mostVectors;
  int64_t pieceColumns, piecesOfSlab;   ///< columns computed together; pieces with sums in scratch
  int64_t rows, columns, depth, groups; ///< of the whole product
  int64_t chunk;                        ///< KC, in steps
  AffineExpr group, row, column, start, step, lane;
  std::optional<TileOperand> matrices;
  std::optional<RowScratch> panel, sums; ///< a row per step, and per column of the slab
  Value square;
};

} // namespace

GroupedMatmul::GroupedMatmul(KernelFunction &kernel, GroupedDotOp op)
    : IndexArithmetic(kernel.builder, op.getLoc()), kernel(kernel), op(op), space(op.getContext()),
      point(kernel.elementEmitter(space)) {
  schedule = readFields<GroupedMatmulSchedule>(kernel.schedule.getParts().front());
  width = schedule.width;
  type = VectorType::get({width}, builder.getF32Type());
  mostVectors = schedule.groups;
  ArrayRef<int64_t> shape = tensorType(op.getWeights()).getShape();
  rows = tensorType(op.getRows()).getDimSize(0);
  groups = shape[0];
  columns = shape[1];
  depth = shape[2];
  chunk = schedule.chunk;
  pieceColumns = schedule.piece;
  piecesOfSlab = schedule.slab;
}

LogicalResult GroupedMatmul::match() {
  if (columns < pieceColumns || pieceColumns % width != 0 || pieceColumns % schedule.rows != 0 ||
      pieceColumns % schedule.narrowRows != 0)
    return kernel.refuse() << "schedule: expected piece of at most " << columns
                           << " columns, a multiple of lanes, rows and narrow_rows, found "
                           << pieceColumns;
  for (auto [dim, extent] : {std::pair(&group, groups),
                             {&row, rows},
                             {&column, columns},
                             {&start, depth},
                             {&step, chunk},
                             {&lane, mostVectors * width}})
    *dim = space.addDim(extent);
  matrices = storedOperand(point, op.getWeights(), {group, column, start + step});
  return success(matrices && space.coefficientOf(matrices->position, dimOf(column)) &&
                 space.coefficientOf(matrices->position, dimOf(step)));
}

void GroupedMatmul::emit() {
  panel.emplace(kernel, loc, type, mostVectors, chunk);
  sums.emplace(kernel, loc, type, mostVectors, piecesOfSlab * pieceColumns);
  square = kernel.stackTile(builder.getF32Type(), width * width);
  int64_t pieces = llvm::divideCeil(columns, pieceColumns);
  kernel.forEachPart(pieces, schedule.claim, [&](Value low, Value high) {
    storeZeros(low, high);
    emitLoop(builder, loc, low, high, piecesOfSlab, {}, [&](Value first, ValueRange) {
      emitSlab(first, least(add(first, piecesOfSlab), high));
      return SmallVector<Value>();
    });
  });
  kernel.setWork(2 * rows * columns * depth);
}

/// The first column of a piece; the last piece overlaps the one before.
Value GroupedMatmul::columnOf(Value number) {
  return least(times(number, pieceColumns), constant(columns - pieceColumns));
}

/// The end of a group's rows, clamped to the existing rows.
Value GroupedMatmul::endOf(Value number) {
  set(group, number);
  point.forget();
  Value end = point.emitAt(op.getEnds(), {group}).parts.front();
  end = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), end);
  end = arith::MaxSIOp::create(builder, loc, end, constant(0));
  return arith::MinSIOp::create(builder, loc, end, constant(rows));
}

void GroupedMatmul::storeZeros(Value low, Value high) {
  Value zero = emitSplat(builder, loc, type, 0.0);
  Value result = kernel.rootBuffers.front().flat;
  emitLoop(builder, loc, endOf(constant(groups - 1)), constant(rows), 1, {},
           [&](Value number, ValueRange) {
             forEachPiece(low, high, [&](Value which, Value) {
               Value first = add(times(number, columns), columnOf(which));
               for (int64_t i = 0; i < pieceColumns; i += width)
                 vector::StoreOp::create(builder, loc, zero, result, add(first, i));
             });
             return SmallVector<Value>();
           });
}

void GroupedMatmul::forEachPiece(Value low, Value high,
                                 llvm::function_ref<void(Value, Value)> body) {
  emitLoop(builder, loc, low, high, 1, {}, [&](Value number, ValueRange) {
    body(number, times(subtract(number, low), pieceColumns));
    return SmallVector<Value>();
  });
}

void GroupedMatmul::emitSlab(Value low, Value high) {
  emitLoop(builder, loc, constant(0), constant(groups), 1, {constant(0)},
           [&](Value number, ValueRange begin) {
             Value end = endOf(number);
             emitBlocks(begin.front(), end, low, high);
             return SmallVector<Value>{end};
           });
}

/// Rows [first, end) of the point's group.
void GroupedMatmul::emitBlocks(Value first, Value end, Value low, Value high) {
  emitLoop(builder, loc, first, end, mostVectors * width, {}, [&](Value begin, ValueRange) {
    Value count = least(subtract(end, begin), constant(mostVectors * width));
    auto byVectors = [&](auto &self, int64_t vectors) -> void {
      if (vectors == mostVectors)
        return emitBlock({begin, count, vectors}, low, high);
      emitIf(
          builder, loc, is(arith::CmpIPredicate::ule, count, constant(vectors * width)),
          [&] { emitBlock({begin, count, vectors}, low, high); }, [&] { self(self, 2 * vectors); });
    };
    byVectors(byVectors, 1);
    return SmallVector<Value>();
  });
}

void GroupedMatmul::emitBlock(const Block &block, Value low, Value high) {
  Value zero = emitSplat(builder, loc, type, 0.0);
  emitLoop(builder, loc, constant(0), times(subtract(high, low), pieceColumns), 1, {},
           [&](Value slabColumn, ValueRange) {
             for (int64_t i = 0; i < block.vectors; ++i)
               sums->store(zero, slabColumn, i);
             return SmallVector<Value>();
           });
  emitSteps(builder, loc, constant(depth), depth, chunk, {},
            [&](Value first, int64_t steps, Carried) {
              emitChunk(block, first, steps, low, high);
              return SmallVector<Value>();
            });
  forEachPiece(low, high,
               [&](Value number, Value slabColumn) { storeSums(block, number, slabColumn); });
}

void GroupedMatmul::emitChunk(const Block &block, Value first, int64_t steps, Value low,
                              Value high) {
  copyRows(block, first, steps);
  set(start, first);
  forEachPiece(low, high, [&](Value number, Value slabColumn) {
    Value firstColumn = columnOf(number);
    emitSteps(builder, loc, constant(pieceColumns), pieceColumns, tileRows(block.vectors), {},
              [&](Value offset, int64_t, Carried) {
                emitTile(block, steps, add(firstColumn, offset), add(slabColumn, offset));
                return SmallVector<Value>();
              });
  });
}

/// Lanes past the block's rows hold other rows, or copies of the last.
void GroupedMatmul::copyRows(const Block &block, Value first, int64_t steps) {
  set(start, first);
  for (int64_t vector = 0; vector < block.vectors; ++vector) {
    SmallVector<Value> numbers;
    for (int64_t i = 0; i < width; ++i)
      numbers.push_back(least(add(block.first, vector * width + i), constant(rows - 1)));
    emitSteps(builder, loc, constant(steps), steps, width, {},
              [&](Value offset, int64_t valid, Carried) {
                set(step, offset);
                point.setLanes({int64_t(dimOf(step)), width, 1, valid});
                SmallVector<Value> vectors;
                for (Value number : numbers) {
                  set(row, number);
                  point.forget();
                  Emitted ofRow = point.emitAt(op.getRows(), {row, start + step});
                  vectors.push_back(point.asVectors(ofRow).front());
                }
                point.setLanes(Lanes());
                vectors = transposeVectors(builder, loc, vectors);
                for (int64_t i = 0; i < valid; ++i)
                  panel->store(vectors[i], add(offset, i), vector);
                return SmallVector<Value>();
              });
  }
}

void GroupedMatmul::emitTile(const Block &block, int64_t steps, Value firstColumn,
                             Value slabColumn) {
  int64_t tile = tileRows(block.vectors);
  set(column, firstColumn);
  set(lane, constant(0));
  point.setLanes({int64_t(dimOf(lane)), width, block.vectors, block.vectors * width});
  int64_t stride = *space.coefficientOf(matrices->position, dimOf(column));
  TileOperand lanes = panel->at(step, lane);
  SmallVector<Value> zeros(tile * block.vectors, emitSplat(builder, loc, type, 0.0));
  SmallVector<Value> products =
      emitSteps(builder, loc, constant(steps), steps, schedule.unroll, zeros,
                [&](Value first, int64_t count, Carried now) {
                  SmallVector<Value> next(now);
                  for (int64_t i = 0; i < count; ++i) {
                    set(step, add(first, i));
                    next = emitTileStep(point, *matrices, stride, lanes, tile, next);
                  }
                  return next;
                });
  point.setLanes(Lanes());
  for (int64_t i = 0; i < tile; ++i)
    for (int64_t vector = 0; vector < block.vectors; ++vector) {
      Value before = sums->load(add(slabColumn, i), vector);
      Value product = products[i * block.vectors + vector];
      sums->store(arith::AddFOp::create(builder, loc, before, product), add(slabColumn, i), vector);
    }
}

void GroupedMatmul::storeSums(const Block &block, Value number, Value slabColumn) {
  Value result = kernel.rootBuffers.front().flat, firstColumn = columnOf(number);
  for (int64_t vector = 0; vector < block.vectors; ++vector) {
    Value firstRow = add(block.first, vector * width);
    Value left = arith::SubIOp::create(builder, loc, add(block.first, block.count), firstRow);
    Value some = arith::MaxSIOp::create(builder, loc, left, constant(0));
    Value valid = least(some, constant(width));
    emitLoop(builder, loc, 0, pieceColumns, width, {}, [&](Value offset, ValueRange) {
      SmallVector<Value> vectors;
      for (int64_t i = 0; i < width; ++i)
        vectors.push_back(sums->load(add(add(slabColumn, offset), i), vector));
      for (auto [i, ofRow] : llvm::enumerate(transposeVectors(builder, loc, vectors)))
        vector::StoreOp::create(builder, loc, ofRow, square, constant(i * width));
      emitLoop(builder, loc, constant(0), valid, 1, {}, [&](Value i, ValueRange) {
        Value ofRow = vector::LoadOp::create(builder, loc, type, square, times(i, width));
        Value to = add(times(add(firstRow, i), columns), add(firstColumn, offset));
        vector::StoreOp::create(builder, loc, ofRow, result, to);
        return SmallVector<Value>();
      });
      return SmallVector<Value>();
    });
  }
}

LogicalResult weft::emitGroupedMatmul(KernelFunction &kernel) {
  auto op = onlyOp<GroupedDotOp>(kernel.source);
  if (!op || kernel.roots.size() != 1 || kernel.roots.front() != op.getResult())
    return failure();
  GroupedMatmul product(kernel, op);
  if (failed(product.match()))
    return failure();
  product.emit();
  return success();
}
