// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory-bound contractions of few rows, both operands contiguous along the reduction: vectors run
// along it. A block of weight rows is read once, in chunks that stay in L1 for all rows of the
// other operand; each product keeps vectors of partial sums, reduced horizontally at the end of a
// chunk. The next block is prefetched meanwhile.
#include "compiler/Kernels/Contraction/SiblingContractions.h"
#include "compiler/Kernels/DotProduct/HorizontalReduction.h"
#include "compiler/Kernels/DotProduct/RowDotSchedule.h"
#include "compiler/Kernels/Emission/WideningLoad.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"
#include "compiler/Kernels/X86/Bf16DotProduct.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {

class RowDot : private IndexArithmetic {
public:
  using Match = DotMatch;
  RowDot(KernelFunction &kernel, DotMatch matched, DictionaryAttr part)
      : IndexArithmetic(kernel.builder, matched.generic.getLoc()), kernel(kernel),
        match(std::move(matched)), generic(match.generic), space(match.space), dot(match.dot),
        point(kernel.elementEmitter(space)), schedule(readFields<RowDotSchedule>(part)),
        columns(schedule.columns), rows(schedule.rows), width(schedule.width),
        paired(schedule.paired), stepWidth(schedule.stepWidth()), chunk(schedule.chunk),
        chains(schedule.chains) {}

  llvm::Error verify() const;
  void emit();
  bool storesOnce() const { return space.extent(dot.column) % columns == 0; }

private:
  /// A chunk of the innermost reduction.
  struct Chunk {
    Value start;
    int64_t size;
    bool isFirst, isLast;
  };

  void emitChunks();
  void emitRows(const Chunk &part);
  void emitTile(int64_t tileRows, const Chunk &part);
  SmallVector<Value> emitReduction(ArrayRef<unsigned> dims, int64_t tileRows, const Chunk &part,
                                   ArrayRef<Value> now);
  void emitStep(int64_t tileRows, MutableArrayRef<Value> sums);
  void emitFetch();
  void finishRow(Value sums, const Chunk &part);
  Type elementType() const { return match.elementType(); }

  KernelFunction &kernel;
  DotMatch match;
  linalg::GenericOp generic;
  IndexSpace &space;
  const DotOperands &dot;
  ElementEmitter point;
  RowDotSchedule schedule;
  int64_t columns, rows, width;
  bool paired;
  int64_t stepWidth, chunk;
  Value partials; ///< scratch, [row][column]: sums over the chunks so far
  int64_t chains;
};

} // namespace

llvm::Error RowDot::verify() const {
  auto wrong = [](const char *format, auto... values) {
    return llvm::createStringError("schedule: " + llvm::formatv(format, values...).str());
  };
  const DotProblem &problem = match.problem;
  if (paired && !problem.halves)
    return wrong("expected paired only for bfloat16, found {0} bits", problem.columnBits);
  if (rows > problem.rows || columns > problem.columns)
    return wrong("expected rows and columns of at most {0} and {1}, found {2} and {3}",
                 problem.rows, problem.columns, rows, columns);
  if (chunk > problem.depth || (chunk < problem.depth && !problem.hasRows))
    return wrong("expected chunk {0}, as there are no rows to keep sums of, found {1}",
                 problem.depth, chunk);
  return llvm::Error::success();
}

void RowDot::emit() {
  int64_t columnCount = space.extent(dot.column);
  int64_t blocks = llvm::divideCeil(columnCount, columns);
  if (chunk < space.extent(dot.depth))
    partials = kernel.scratch(elementType(), space.extent(*dot.row) * columns);
  kernel.forEachPiece(space.count(dot.outer) * blocks, schedule.claim, [&](Value number) {
    Value block = remainderOf(number, blocks), rest = dividedBy(number, blocks);
    setFlat(point, dot.outer, rest);
    // The last block overlaps the one before: the shared columns are computed twice, to the same
    // values.
    Value first = times(block, columns);
    first = least(first, constant(columnCount - columns));
    point.setDim(dot.column, first);
    emitChunks();
  });
}

void RowDot::emitChunks() {
  int64_t extent = space.extent(dot.depth), last = (extent - 1) / chunk * chunk;
  if (last == 0)
    return emitRows({constant(0), extent, /*isFirst=*/true, /*isLast=*/true});
  emitRows({constant(0), chunk, /*isFirst=*/true, /*isLast=*/false});
  emitLoop(builder, loc, chunk, last, chunk, {}, [&](Value start, ValueRange) {
    emitRows({start, chunk, /*isFirst=*/false, /*isLast=*/false});
    return SmallVector<Value>();
  });
  emitRows({constant(last), extent - last, /*isFirst=*/false, /*isLast=*/true});
}

void RowDot::emitRows(const Chunk &part) {
  if (!dot.row)
    return emitTile(1, part);
  int64_t rowCount = space.extent(*dot.row), whole = rowCount / rows * rows;
  emitLoop(builder, loc, 0, whole, rows, {}, [&](Value variable, ValueRange) {
    point.setDim(*dot.row, variable);
    emitTile(rows, part);
    return SmallVector<Value>();
  });
  if (whole < rowCount) {
    point.setDim(*dot.row, constant(whole));
    emitTile(rowCount - whole, part);
  }
}

void RowDot::emitFetch() {
  if (schedule.stepsAhead)
    return dot.emitFetchAhead(point, columns, schedule.stepsAhead);
  if (!schedule.prefetch)
    return;
  Value tile = dividedBy(point.dimValue(*dot.row), rows);
  dot.emitFetch(point, columns, tile, llvm::divideCeil(space.extent(*dot.row), rows),
                CacheLevel::First);
}

/// sums[i * columns + j] += row i * column j, lane by lane, at the point.
void RowDot::emitStep(int64_t tileRows, MutableArrayRef<Value> sums) {
  auto type = VectorType::get({stepWidth}, paired ? builder.getBF16Type() : elementType());
  int64_t columnStride = dot.columnStride(space);
  int64_t rowStride = dot.rowStride(space);
  auto loadAt = [&](const ContractionOperand &operand, Value base, int64_t offset) {
    Value address = base;
    if (offset != 0)
      address = add(base, constant(offset));
    return loadVector(builder, loc, type, point.getBuffer(operand.memory)->flat, address,
                      point.validMask(0));
  };
  Value rowBase = point.indexValue(dot.rows.position),
        columnBase = point.indexValue(dot.columns.position);
  SmallVector<Value> rowVectors;
  for (int64_t i = 0; i < tileRows; ++i)
    rowVectors.push_back(loadAt(dot.rows, rowBase, i * rowStride));
  for (int64_t j = 0; j < columns; ++j) {
    Value vector = loadAt(dot.columns, columnBase, j * columnStride);
    for (int64_t i = 0; i < tileRows; ++i) {
      Value &sum = sums[i * columns + j];
      sum = paired ? addPairProducts(builder, loc, sum, vector, rowVectors[i])
                   : vector::FMAOp::create(builder, loc, vector, rowVectors[i], sum).getResult();
    }
  }
}

/// The partial sums of a tile, `chains` accumulators for each result, chain by chain.
SmallVector<Value> RowDot::emitReduction(ArrayRef<unsigned> dims, int64_t tileRows,
                                         const Chunk &part, ArrayRef<Value> now) {
  if (dims.size() > 1)
    return emitLoop(builder, loc, 0, space.extent(dims.front()), 1, now,
                    [&](Value variable, ValueRange carried) {
                      point.setDim(dims.front(), variable);
                      return emitReduction(dims.drop_front(), tileRows, part,
                                           SmallVector<Value>(carried));
                    });
  int64_t tileSize = tileRows * columns;
  int64_t whole = part.size / stepWidth * stepWidth;
  int64_t together = whole / (stepWidth * chains) * (stepWidth * chains);
  auto at = [&](Value variable, int64_t offset) {
    Value step = add(part.start, variable);
    point.setDim(dot.depth, add(step, constant(offset)));
  };
  point.setLanes({static_cast<int64_t>(dot.depth), stepWidth, 1, stepWidth});
  auto steps = [&](int64_t low, int64_t high, int64_t count, ArrayRef<Value> sums) {
    return emitLoop(builder, loc, low, high, stepWidth * count, sums,
                    [&](Value variable, ValueRange carried) {
                      SmallVector<Value> sums(carried);
                      for (int64_t chain = 0; chain < count; ++chain) {
                        at(variable, chain * stepWidth);
                        emitFetch();
                        emitStep(tileRows, MutableArrayRef(sums).slice(chain * tileSize, tileSize));
                      }
                      return sums;
                    });
  };
  SmallVector<Value> sums = steps(0, together, chains, now);
  if (together < whole)
    sums = steps(together, whole, 1, sums);
  if (whole < part.size) {
    point.setLanes({static_cast<int64_t>(dot.depth), stepWidth, 1, part.size - whole});
    at(constant(whole), 0);
    emitStep(tileRows, MutableArrayRef(sums).take_front(tileSize));
  }
  return sums;
}

void RowDot::emitTile(int64_t tileRows, const Chunk &part) {
  auto type = VectorType::get({width}, elementType());
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  int64_t tileSize = tileRows * columns;
  SmallVector<Value> sums =
      emitReduction(dot.shape.reduced, tileRows, part, SmallVector<Value>(chains * tileSize, zero));
  for (int64_t stride = 1; stride < chains; stride *= 2)
    for (int64_t chain = 0; chain + stride < chains; chain += 2 * stride)
      for (int64_t i = 0; i < tileSize; ++i) {
        Value &sum = sums[chain * tileSize + i];
        sum = arith::AddFOp::create(builder, loc, sum, sums[(chain + stride) * tileSize + i]);
      }

  Value firstRow = dot.row ? point.dimValue(*dot.row) : Value();
  for (int64_t i = 0; i < tileRows; ++i) {
    if (dot.row)
      point.setDim(*dot.row, add(firstRow, constant(i)));
    finishRow(horizontalSums(builder, loc, ArrayRef(sums).slice(i * columns, columns)), part);
  }
  if (dot.row)
    point.setDim(*dot.row, firstRow);
  point.setLanes(Lanes());
}

/// Adds the sums of one row over one chunk to those of the chunks before; after the last chunk,
/// passes them through the epilogue.
void RowDot::finishRow(Value sums, const Chunk &part) {
  if (partials) {
    Value number = point.dimValue(*dot.row);
    Value address = times(number, columns);
    if (!part.isFirst) {
      Value before =
          vector::LoadOp::create(builder, loc, cast<VectorType>(sums.getType()), partials, address);
      sums = arith::AddFOp::create(builder, loc, before, sums);
    }
    if (!part.isLast) {
      vector::StoreOp::create(builder, loc, sums, partials, address);
      return;
    }
  }
  point.setLanes({static_cast<int64_t>(dot.column), columns, 1, columns});
  storeRoots(kernel, point, match.roots, unroundedForms(kernel, generic->getResult(0)),
             {{sums}, false});
}

LogicalResult weft::emitRowDot(KernelFunction &kernel) {
  return emitSiblingContractions<RowDot>(kernel);
}
