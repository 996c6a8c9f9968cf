// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contractions in register tiles. One operand (B) is read as vectors along the result's innermost
// dim, the other (A) is broadcast element by element from its original layout:
//   acc[i][j] += broadcast(scalars[i]) * vectors[j].
// If that dim is a batch dim, as in depthwise convolutions, both are read as vectors; if it spans
// narrow groups, a vector of scalars is spread over the lanes. Loops, outermost first: blocks of B
// panels that stay in L2, chunks of the reduction, rows of tiles, panels of the block, the tile.
#include "compiler/Kernels/Contraction/AmxContraction.h"
#include "compiler/Kernels/Contraction/ContractionGrid.h"
#include "compiler/Kernels/Contraction/ContractionResult.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Contraction/CountedTiles.h"
#include "compiler/Kernels/Contraction/SiblingContractions.h"
#include "compiler/Kernels/Contraction/TileAccumulation.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {

/// Panels [panel, panelEnd), the rows of tiles that are computed with them, and a chunk of the sum.
struct Block {
  Value panel, panelEnd, rowsLow, rowsHigh;
  Value firstPanel{}; ///< of the thread's work chunk
  Chunk chunk{};
};

class Contraction : private IndexArithmetic {
public:
  using Match = ContractionMatch;
  Contraction(KernelFunction &kernel, ContractionMatch matched, DictionaryAttr part);

  llvm::Error verify() const;
  void emit();
  /// AMX is not analysed.
  bool storesOnce() const { return !result.hasSpilled() && !schedule.matrixUnit; }

private:
  void emitBatch(Value low, Value high);
  void emitBlocks(Value low, Value high);
  void emitPanelBlocks(Value low, Value high);
  void emitBlock(Block block);
  void emitChunk(const Block &block);
  void enterCopy(const Block &block, PackedBPanel &copies);
  void copyVectors(Value panel, Value panelEnd, const Chunk &chunk);
  void emitMatrixBlock(const Block &block);
  void emitRows(const Block &block);
  void emitStrips(const Block &block, PackedAPanel &strip);
  void forEachPartOfStrip(const Chunk &chunk, llvm::function_ref<void(const Chunk &)> body);
  void emitRow(Value rowNumber, const Block &block, const Chunk &part);
  Value firstRowOf(Value rowTile);
  void forRowsOf(Value rowTile, llvm::function_ref<void(int64_t)> body);
  void atPanel(Value number, llvm::function_ref<void(int64_t)> body);
  void emitTile(int64_t rows, int64_t lanes, const Chunk &chunk, const Ahead &ahead);
  void emitLanes(int64_t rows, int64_t lanes, const Chunk &chunk, const Ahead &ahead);
  int64_t widthOf(int64_t lanes) const {
    return lanes <= schedule.narrowWidth ? schedule.narrowWidth : schedule.width;
  }
  void setRow(Value value) {
    if (roles.row)
      point.setDim(*roles.row, value);
  }
  Value position(AffineExpr expr) { return point.indexValue(expr); }
  /// Reduced dims within a chunk.
  ArrayRef<unsigned> chunkDims() const {
    return ArrayRef(shape.reduced).drop_front(schedule.outerChunks);
  }

  KernelFunction &kernel;
  ContractionMatch match;
  IndexSpace &space;
  const ContractionShape &shape;
  const ContractionRoles &roles;
  ElementEmitter point;
  ContractionSchedule schedule;
  ContractionResult result;
  ContractionGrid grid;
  CountedTiles counted;
  int64_t lastLanes; ///< computed lanes of the last lane block, in whole vectors
  Value low, high;   ///< the work chunk of the split that is being computed
  std::optional<TileAccumulation> tileSums;
  std::optional<AmxContraction> matrix;
  Value tile; ///< stack memory for partial sums, or for tileEpilogue
};

} // namespace

Contraction::Contraction(KernelFunction &kernel, ContractionMatch matched, DictionaryAttr part)
    : IndexArithmetic(kernel.builder, matched.generic.getLoc()), kernel(kernel),
      match(std::move(matched)), space(match.space), shape(match.shape), roles(match.roles),
      point(kernel.elementEmitter(space)), schedule(readFields<ContractionSchedule>(part)),
      result(kernel, point, match, schedule),
      grid(ContractionGrid::of(match.problem, schedule, kernel.target.team())),
      counted(kernel, point, match, schedule), lastLanes(match.problem.laneCount) {
  const ContractionProblem &problem = match.problem;
  int64_t ofTail = problem.lastLanes % (schedule.groups * schedule.width);
  if (schedule.matrixUnit)
    grid.rowPieces = llvm::divideCeil(grid.rowCount * grid.outerRows, AmxContraction::blockRows);
  else
    lastLanes = std::min<int64_t>(lastLanes, llvm::alignTo(problem.lastLanes, widthOf(ofTail)));
  if (!schedule.matrixUnit && (schedule.strip || !grid.isUneven()))
    result.numberTiles(grid.rowTiles);
}

llvm::Error Contraction::verify() const { return schedule.verify(match.problem, kernel.target); }

void Contraction::emit() {
  Type element = getElementTypeOrSelf(match.generic.getResultTypes().front());
  if (schedule.tileEpilogue || schedule.sumsInBlocks())
    tile = kernel.stackTile(element, schedule.rows * schedule.groups * schedule.width);
  tileSums.emplace(kernel, point, loc, roles, chunkDims(), schedule, element, tile);
  if (schedule.matrixUnit)
    matrix.emplace(kernel, point, loc, roles, shape.reduced, schedule.panels, schedule.chunk);
  kernel.forEachPart(grid.pieces(), schedule.claim, [&](Value first, Value end) {
    low = first;
    high = end;
    if (grid.split == ContractionGrid::Batches)
      emitBatch(low, high);
    else if (grid.split == ContractionGrid::Blocks)
      emitBlocks(low, high);
    else
      emitBatch(constant(0), constant(grid.batches));
  });
  if (matrix)
    matrix->release();
}

void Contraction::emitBatch(Value first, Value end) {
  Value panels = constant(grid.panels());
  auto panelBlocks = [&] {
    if (grid.split == ContractionGrid::Panels)
      emitPanelBlocks(low, high);
    else
      emitPanelBlocks(constant(0), panels);
  };
  if (roles.batch.empty()) {
    panelBlocks();
    return;
  }
  emitLoop(builder, loc, first, end, 1, {}, [&](Value number, ValueRange) {
    setFlat(point, roles.batch, number);
    panelBlocks();
    return SmallVector<Value>();
  });
}

/// Pieces [low, high): rows of tiles, numbered block after block.
void Contraction::emitBlocks(Value low, Value high) {
  int64_t rows = grid.rowPieces;
  Value firstBlock = dividedBy(low, rows), blocksEnd = dividedBy(add(high, rows - 1), rows);
  emitLoop(builder, loc, firstBlock, blocksEnd, 1, {}, [&](Value number, ValueRange) {
    Value before = times(number, rows), panel = times(number, schedule.panels);
    Value rowsLow = arith::MaxUIOp::create(builder, loc, low, before);
    Value rowsHigh = least(high, add(before, rows));
    emitBlock({panel, add(panel, schedule.panels), subtract(rowsLow, before),
               subtract(rowsHigh, before)});
    return SmallVector<Value>();
  });
}

void Contraction::emitPanelBlocks(Value first, Value end) {
  bool shared = grid.split == ContractionGrid::Rows;
  Value rowsLow = shared ? low : constant(0);
  Value rowsHigh = shared ? high : constant(grid.rowPieces);
  emitLoop(builder, loc, first, end, schedule.panels, {}, [&](Value panel, ValueRange) {
    emitBlock({panel, least(add(panel, schedule.panels), end), rowsLow, rowsHigh, first});
    return SmallVector<Value>();
  });
}

/// The block's chunks of the reduction, in order.
void Contraction::emitBlock(Block block) {
  int64_t depth = shape.reduced.empty() ? 1 : space.extent(shape.reduced.back());
  int64_t size = shape.reduced.size() == 1 ? schedule.chunk : depth;
  int64_t outerSteps = space.count(ArrayRef(shape.reduced).take_front(schedule.outerChunks));
  for (int64_t outer = 0; outer < outerSteps; ++outer) {
    if (schedule.outerChunks)
      point.setDim(shape.reduced.front(), constant(outer));
    for (int64_t start = 0; start < depth; start += size) {
      block.chunk = {constant(start), size, outer == 0 && start == 0,
                     outer + 1 == outerSteps && start + size == depth};
      emitChunk(block);
    }
  }
}

void Contraction::emitChunk(const Block &block) {
  if (tileSums->copiesVectors())
    copyVectors(block.panel, block.panelEnd, block.chunk);
  if (PackedBPanel *copies = tileSums->getCopies())
    enterCopy(block, *copies);
  if (matrix)
    emitMatrixBlock(block);
  else
    emitRows(block);
}

/// Packs the rest of this block's panel: what the rows of tiles of the previous one did not pack
/// ahead.
void Contraction::enterCopy(const Block &block, PackedBPanel &copies) {
  const Chunk &chunk = block.chunk;
  int64_t chunks = space.extent(shape.reduced.front()) / chunk.size;
  Value number = add(times(block.panel, chunks), dividedBy(chunk.start, chunk.size));
  Value firstNumber = times(block.firstPanel, chunks);
  Value isFirst = is(arith::CmpIPredicate::eq, number, firstNumber);
  atPanel(block.panel, [&](int64_t) {
    copies.enter(number, chunk.start, chunk.size, subtract(block.rowsHigh, block.rowsLow), isFirst);
  });
}

void Contraction::copyVectors(Value panel, Value panelEnd, const Chunk &chunk) {
  emitLoop(builder, loc, panel, panelEnd, 1, {}, [&](Value number, ValueRange) {
    atPanel(number, [&](int64_t lanes) {
      int64_t groups = llvm::divideCeil(lanes, schedule.width);
      point.setLanes({static_cast<int64_t>(roles.lane), schedule.width, groups, lanes});
      tileSums->copyVectors(subtract(number, panel), chunk.start, chunk.size);
      point.setLanes(Lanes());
    });
    return SmallVector<Value>();
  });
}

void Contraction::emitMatrixBlock(const Block &block) {
  const Chunk &chunk = block.chunk;
  auto withLanes = [&](Value number, llvm::function_ref<void()> body) {
    atPanel(number, [&](int64_t valid) {
      int64_t groups = llvm::divideCeil(valid, schedule.width);
      point.setLanes({static_cast<int64_t>(roles.lane), schedule.width, groups, valid});
      body();
      point.setLanes(Lanes());
    });
  };
  SmallVector<unsigned> rowDims = roles.rowDims();
  auto atRow = [&](Value row) {
    setFlat(point, rowDims, row);
    point.forget();
  };
  auto finishRow = [&](ArrayRef<Value> sums) { result.storeRow(sums, chunk); };
  // One row at a time, as a block may span several outer rows.
  auto byVectors = [&](Value number, Value firstRow, Value rows) {
    emitLoop(builder, loc, constant(0), rows, 1, {}, [&](Value row, ValueRange) {
      Value flat = add(firstRow, row);
      atPanel(number, [&](int64_t lanes) {
        atRow(flat);
        emitTile(/*rows=*/1, lanes, chunk, Ahead());
      });
      return SmallVector<Value>();
    });
  };
  matrix->emit(block.panel, block.panelEnd, block.rowsLow, block.rowsHigh, chunk.start, chunk.size,
               {atRow, withLanes, finishRow, byVectors});
}

/// Moves the point to panel `number`; `body` is emitted for each possible number of valid lanes.
void Contraction::atPanel(Value number, llvm::function_ref<void(int64_t)> body) {
  int64_t blockLanes = schedule.groups * schedule.width;
  Value laneBlock = number;
  if (!roles.outerPanels.empty()) {
    bool isOne = grid.laneBlocks == 1;
    laneBlock = isOne ? constant(0) : remainderOf(number, grid.laneBlocks);
    setFlat(point, roles.outerPanels, isOne ? number : dividedBy(number, grid.laneBlocks));
  }
  point.setDim(roles.lane, times(laneBlock, blockLanes));
  auto ofLanes = [&](int64_t lanes) {
    int64_t whole = lanes / blockLanes, tail = lanes % blockLanes;
    auto atTail = [&] {
      if (tail > 0 && whole + 1 == grid.laneBlocks)
        body(tail);
      else if (tail > 0)
        emitIf(builder, loc, is(arith::CmpIPredicate::eq, laneBlock, constant(whole)),
               [&] { body(tail); });
    };
    if (whole == grid.laneBlocks)
      body(blockLanes);
    else if (whole == 0)
      atTail();
    else
      emitIf(
          builder, loc, is(arith::CmpIPredicate::ult, laneBlock, constant(whole)),
          [&] { body(blockLanes); }, atTail);
  };
  int64_t all = space.extent(roles.lane);
  if (lastLanes == all) {
    ofLanes(all);
    return;
  }
  Value isLast = is(arith::CmpIPredicate::eq, position(shape.padded->block),
                    constant(shape.padded->blocks - 1));
  emitIf(builder, loc, isLast, [&] { ofLanes(lastLanes); }, [&] { ofLanes(all); });
}

void Contraction::emitRows(const Block &block) {
  if (PackedAPanel *strip = tileSums->getStrip()) {
    emitStrips(block, *strip);
    return;
  }
  emitLoop(builder, loc, block.rowsLow, block.rowsHigh, 1, {}, [&](Value rowNumber, ValueRange) {
    emitRow(rowNumber, block, block.chunk);
    return SmallVector<Value>();
  });
}

/// All parts of the chunk before the next packed A panel, so that the partial sums of its few rows
/// stay in cache.
void Contraction::emitStrips(const Block &block, PackedAPanel &strip) {
  int64_t rowsOfStrip = schedule.strip / schedule.rows;
  Value begin = dividedBy(block.rowsLow, rowsOfStrip);
  Value end = dividedBy(add(block.rowsHigh, rowsOfStrip - 1), rowsOfStrip);
  Value chunkEnd = add(block.chunk.start, block.chunk.size);
  Value nextChunk = block.chunk.last ? constant(0) : chunkEnd;
  emitLoop(builder, loc, begin, end, 1, {}, [&](Value number, ValueRange) {
    Value following = add(number, 1);
    Value isLast = is(arith::CmpIPredicate::eq, following, end);
    auto ifLast = [&](Value yes, Value no) -> Value {
      return arith::SelectOp::create(builder, loc, isLast, yes, no);
    };
    PackedAPanel::Next next{ifLast(begin, following), ifLast(nextChunk, block.chunk.start),
                            chunkEnd};
    Value first = times(number, rowsOfStrip);
    Value low = arith::MaxUIOp::create(builder, loc, first, block.rowsLow);
    Value high = least(add(first, rowsOfStrip), block.rowsHigh);
    forEachPartOfStrip(block.chunk, [&](const Chunk &part) {
      strip.emitCopy(number, part.start, part.size, next);
      emitLoop(builder, loc, low, high, 1, {}, [&](Value rowNumber, ValueRange) {
        strip.enterRow(subtract(rowNumber, first));
        emitRow(rowNumber, block, part);
        return SmallVector<Value>();
      });
    });
    return SmallVector<Value>();
  });
}

/// The parts of a chunk that are packed into the A panel one after another.
void Contraction::forEachPartOfStrip(const Chunk &chunk,
                                     llvm::function_ref<void(const Chunk &)> body) {
  int64_t size = schedule.stripSteps, parts = chunk.size / size;
  if (parts == 1) {
    body(chunk);
    return;
  }
  Value end = add(chunk.start, chunk.size);
  Value second = add(chunk.start, size), last = subtract(end, constant(size));
  if (chunk.first)
    body({chunk.start, size, /*first=*/true, /*last=*/false});
  if (parts > chunk.first + chunk.last)
    emitLoop(builder, loc, chunk.first ? second : chunk.start, chunk.last ? last : end, size, {},
             [&](Value start, ValueRange) {
               body({start, size, /*first=*/false, /*last=*/false});
               return SmallVector<Value>();
             });
  if (chunk.last)
    body({last, size, /*first=*/false, /*last=*/true});
}

/// The row of tiles `rowNumber`, for `part` of the block's chunk.
void Contraction::emitRow(Value rowNumber, const Block &block, const Chunk &part) {
  Value rowTile = rowNumber;
  if (!roles.outerRows.empty()) {
    rowTile = remainderOf(rowNumber, grid.rowTiles);
    setFlat(point, roles.outerRows, dividedBy(rowNumber, grid.rowTiles));
  }
  Value rowStart = firstRowOf(rowTile);
  setRow(rowStart);
  Ahead ahead;
  bool hasNext = grid.panels() > schedule.panels || !part.last;
  if (schedule.panelPrefetch && hasNext) {
    ahead.turn = subtract(rowNumber, block.rowsLow);
    int64_t outerPanels = llvm::divideCeil(schedule.panels, grid.laneBlocks);
    ahead.panelsBetween = part.last ? outerPanels - 1 : 0;
  }
  if (schedule.copiedSteps || (schedule.stridedPrefetch && hasNext)) {
    ahead.turn = subtract(rowNumber, block.rowsLow);
    ahead.panelsBetween = part.last ? schedule.panels : 0;
    ahead.step = part.last ? constant(0) : add(part.start, part.size);
  }
  if (schedule.prefetch)
    ahead.row = least(firstRowOf(add(rowTile, 1)),
                      constant(std::max<int64_t>(grid.rowCount - schedule.rows, 0)));
  int64_t inLastBlock = grid.panels() % schedule.panels;
  bool dividesPanels = grid.split == ContractionGrid::Panels;
  ahead.tiles = inLastBlock && !dividesPanels ? inLastBlock : schedule.panels;
  forRowsOf(rowTile, [&](int64_t rows) {
    emitLoop(builder, loc, block.panel, block.panelEnd, 1, {}, [&](Value number, ValueRange) {
      ahead.tile = subtract(number, block.panel);
      tileSums->enterPanel(ahead.tile, block.chunk.start);
      atPanel(number, [&](int64_t lanes) { emitTile(rows, lanes, part, ahead); });
      return SmallVector<Value>();
    });
  });
}

/// First row of a row tile. Tiles of a packed A panel are full except for the last of all; others
/// differ by at most one row.
Value Contraction::firstRowOf(Value rowTile) {
  if (schedule.strip || !grid.isUneven())
    return times(rowTile, schedule.rows);
  return dividedBy(times(rowTile, grid.rowCount), grid.rowTiles);
}

/// `body` is emitted for each number of rows that row tile `rowTile` may have.
void Contraction::forRowsOf(Value rowTile, llvm::function_ref<void(int64_t)> body) {
  int64_t rows = grid.rowTiles == 1 ? grid.rowCount : schedule.rows;
  int64_t fewer = schedule.strip ? grid.rowCount % rows : grid.isUneven() ? rows - 1 : 0;
  if (fewer == 0) {
    body(rows);
    return;
  }
  Value end = least(firstRowOf(add(rowTile, 1)), constant(grid.rowCount));
  Value isWhole = is(arith::CmpIPredicate::eq, subtract(end, firstRowOf(rowTile)), constant(rows));
  emitIf(builder, loc, isWhole, [&] { body(rows); }, [&] { body(fewer); });
}

/// The last rows that count may fill fewer vectors than a tile has.
void Contraction::emitTile(int64_t rows, int64_t lanes, const Chunk &chunk, const Ahead &ahead) {
  Value count = lanes > schedule.width ? counted.lanes() : Value();
  if (!count)
    return emitLanes(rows, lanes, chunk, ahead);
  SmallVector<int64_t> sizes;
  for (int64_t fewer = schedule.width; fewer < lanes; fewer += schedule.width)
    sizes.push_back(fewer);
  sizes.push_back(lanes);
  emitForCount(builder, loc, count, sizes,
               [&](int64_t enough) { emitLanes(rows, enough, chunk, ahead); });
}

void Contraction::emitLanes(int64_t rows, int64_t lanes, const Chunk &chunk, const Ahead &ahead) {
  int64_t width = widthOf(lanes), groups = llvm::divideCeil(lanes, width);
  point.setLanes({static_cast<int64_t>(roles.lane), width, groups, lanes});
  auto compute = [&] {
    SmallVector<Value> sums = tileSums->emit(rows, groups, chunk.start, chunk.size, ahead);
    result.storeTile(rows, groups, sums, chunk, tile);
  };
  auto leaveOut = [&] {
    Type element = getElementTypeOrSelf(match.generic.getResultTypes().front());
    Value zero = emitSplat(builder, loc, VectorType::get({width}, element), 0.0);
    SmallVector<Value> sums(rows * groups, zero);
    result.storeTile(rows, groups, sums, chunk, tile);
  };
  if (Value counts = counted.rows()) {
    if (counted.leavesRest())
      emitIf(builder, loc, counts, compute);
    else
      emitIf(builder, loc, counts, compute, leaveOut);
  } else {
    compute();
  }
  point.setLanes(Lanes());
}

LogicalResult weft::emitContraction(KernelFunction &kernel) {
  return emitSiblingContractions<Contraction>(kernel);
}
