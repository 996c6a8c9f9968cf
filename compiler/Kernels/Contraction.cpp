// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contractions in register tiles. One operand is read as vectors along the result's
// innermost dim, the other is broadcast scalar by scalar where it lies:
//   acc[i][j] += broadcast(scalars[i]) * vectors[j].
// Loops: blocks of vector panels that stay in L2, chunks of the reduction, rows of the
// broadcast operand, panels of the block, the tile. The epilogue runs on the accumulators,
// or on the tile in L1 when it holds transcendental functions.
#include "compiler/Kernels/ContractionSchedule.h"
#include "compiler/Kernels/ContractionShape.h"
#include "compiler/Kernels/Emitters.h"
#include "compiler/Kernels/RegisterTile.h"
#include "compiler/Kernels/SideBySide.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {

enum class Split { Batch, Rows, Panels };

class Contraction {
public:
  Contraction(KernelFunction &kernel, linalg::GenericOp generic)
      : kernel(kernel), builder(kernel.builder), loc(generic.getLoc()), generic(generic),
        space(generic.getContext()), point(kernel.pointEmitter(space)) {}

  LogicalResult match();
  void emit(bool serial);
  int64_t flops() const { return shape.flops(space); }
  SmallVector<ScheduleEntry> getSchedule() const {
    return {{"rows", schedule.rows},
            {"groups", schedule.groups},
            {"lanes", schedule.width},
            {"chunk", schedule.chunk},
            {"summands", schedule.summands},
            {"panels", schedule.panels},
            {"unroll", schedule.unroll},
            {"prefetch", schedule.prefetch},
            {"tile_epilogue", schedule.tileEpilogue}};
  }
  ArrayRef<EpilogueRoot> getRoots() const { return roots; }

private:
  LogicalResult chooseRoles();
  void chooseSchedule();
  Split chooseSplit() const;

  void emitBatch(Value low, Value high);
  void emitPanelBlocks(Value low, Value high);
  void emitRows(Value panel, Value panelEnd, Value chunkStart, int64_t chunkSize, bool first,
                bool last);
  void emitTile(int64_t rows, int64_t groups, int64_t valid, Value chunkStart, int64_t chunkSize,
                bool first, bool last, Value prefetchRow);
  SmallVector<Value> emitSums(int64_t rows, int64_t groups, Value chunkStart, int64_t chunkSize,
                              Value prefetchRow);
  SmallVector<Value> emitReduction(ArrayRef<unsigned> dims, int64_t rows, Value chunkStart,
                                   int64_t chunkSize, ArrayRef<Value> accumulators,
                                   Value prefetchRow);
  SmallVector<Value> emitStep(int64_t rows, ArrayRef<Value> accumulators);
  void emitEpilogue(int64_t rows, int64_t groups, ArrayRef<Value> accumulators);
  void setFlat(ArrayRef<unsigned> dims, Value number);
  Value position(AffineExpr expr) { return point.indexValue(expr); }
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value add(Value a, int64_t b) {
    return b == 0 ? a : arith::AddIOp::create(builder, loc, a, constant(b)).getResult();
  }
  int64_t count(ArrayRef<unsigned> dims) const {
    int64_t total = 1;
    for (unsigned dim : dims)
      total *= space.extent(dim);
    return total;
  }

  KernelFunction &kernel;
  OpBuilder &builder;
  Location loc;
  linalg::GenericOp generic;
  IndexSpace space;
  PointEmitter point;
  ContractionShape shape;
  SmallVector<EpilogueRoot> roots;
  const EpilogueRoot *spillRoot = nullptr;
  ContractionSchedule schedule;

  unsigned lane = 0;                 ///< vectors run along this dim
  std::optional<unsigned> row;       ///< tile rows run along this dim
  SmallVector<unsigned> outerRows;   ///< other free dims of the broadcast operand
  SmallVector<unsigned> outerPanels; ///< other free dims of the vector operand
  AffineExpr scalars, vectors;       ///< positions
  Value scalarMemory, vectorMemory;
  int64_t rowCount = 1, rowTiles = 1, laneBlocks = 1;
  Split split = Split::Rows;
  Value low, high; ///< this thread's share of the split
  Value tile;      ///< scratch for tileEpilogue
};

} // namespace

LogicalResult Contraction::match() {
  FailureOr<ContractionShape> matched = ContractionShape::match(generic, space);
  if (failed(matched))
    return failure();
  shape = *matched;
  if (failed(chooseRoles()))
    return failure();
  auto found = epilogueRoots(kernel, generic->getResult(0), shape.resultIndex, space);
  if (failed(found))
    return failure();
  roots = *found;
  chooseSchedule();
  return success();
}

LogicalResult Contraction::chooseRoles() {
  auto isUnit = [&](AffineExpr expr, unsigned dim) { return space.coefficientOf(expr, dim) == 1; };
  auto laneOf = [&](ArrayRef<unsigned> free, AffineExpr operand) -> std::optional<unsigned> {
    for (unsigned dim : free)
      if (isUnit(operand, dim) && isUnit(shape.resultPosition, dim))
        return dim;
    return std::nullopt;
  };
  std::optional<unsigned> inRhs = laneOf(shape.rhsFree, shape.rhsPosition);
  std::optional<unsigned> inLhs = laneOf(shape.lhsFree, shape.lhsPosition);
  if (!inRhs && !inLhs)
    return failure();
  bool vectorsAreRhs = inRhs.has_value();
  lane = vectorsAreRhs ? *inRhs : *inLhs;
  ArrayRef<unsigned> scalarFree = vectorsAreRhs ? shape.lhsFree : shape.rhsFree;
  ArrayRef<unsigned> vectorFree = vectorsAreRhs ? shape.rhsFree : shape.lhsFree;
  scalars = vectorsAreRhs ? shape.lhsPosition : shape.rhsPosition;
  vectors = vectorsAreRhs ? shape.rhsPosition : shape.lhsPosition;
  scalarMemory = vectorsAreRhs ? shape.lhs : shape.rhs;
  vectorMemory = vectorsAreRhs ? shape.rhs : shape.lhs;

  // Tile rows along the innermost free dim that is long enough, else the longest.
  for (unsigned dim : scalarFree)
    if (!row || space.extent(dim) >= std::min<int64_t>(space.extent(*row), 6))
      row = dim;
  for (unsigned dim : scalarFree)
    if (dim != row)
      outerRows.push_back(dim);
  for (unsigned dim : vectorFree)
    if (dim != lane)
      outerPanels.push_back(dim);
  rowCount = row ? space.extent(*row) : 1;
  return success();
}

/// Whether `root` stands on `contraction` through functions of many instructions.
static bool isTranscendental(Value root, linalg::GenericOp contraction) {
  SmallVector<Value> worklist{root};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!worklist.empty()) {
    auto user = worklist.pop_back_val().getDefiningOp<linalg::GenericOp>();
    if (!user || user == contraction || !seen.insert(user).second)
      continue;
    for (Operation &op : *user.getBody())
      if (isa<math::MathDialect>(op.getDialect()) &&
          !isa<math::AbsFOp, math::SqrtOp, math::FloorOp>(op))
        return true;
    llvm::append_range(worklist, user->getOperands());
  }
  return false;
}

void Contraction::chooseSchedule() {
  Type element = getElementTypeOrSelf(generic.getResultTypes().front());
  spillRoot = llvm::find_if(roots, [&](const EpilogueRoot &root) {
    return getElementTypeOrSelf(kernel.roots[root.number].getType()) == element;
  });

  ContractionProblem problem;
  problem.elementBits = element.getIntOrFloatBitWidth();
  int64_t elementBytes = problem.elementBits / 8;
  problem.rowCount = rowCount;
  problem.rowStrideBytes = row ? *space.coefficientOf(scalars, *row) * elementBytes : 0;
  problem.laneCount = space.extent(lane);
  problem.outerPanels = count(outerPanels);
  for (unsigned dim : shape.reduced)
    problem.reduced.push_back(space.extent(dim));
  problem.scalarBytes =
      cast<RankedTensorType>(scalarMemory.getType()).getNumElements() * elementBytes;
  problem.scalarsContiguous = outerRows.empty() && shape.reduced.size() == 1 &&
                              space.coefficientOf(scalars, shape.reduced[0]) == 1;
  problem.canSpill = spillRoot != roots.end();
  problem.transcendental = llvm::any_of(roots, [&](const EpilogueRoot &root) {
    return isTranscendental(kernel.roots[root.number], generic);
  });
  schedule = ContractionSchedule::choose(problem, kernel.target);
  rowTiles = llvm::divideCeil(rowCount, schedule.rows);
  laneBlocks = llvm::divideCeil(problem.laneCount, schedule.groups * schedule.width);
  split = chooseSplit();
}

Split Contraction::chooseSplit() const {
  // The first choice that divides among two threads with little left over.
  std::pair<Split, int64_t> choices[] = {{Split::Batch, count(shape.batch)},
                                         {Split::Rows, rowTiles * count(outerRows)},
                                         {Split::Panels, laneBlocks * count(outerPanels)}};
  auto balance = [](int64_t pieces) {
    return pieces < 2 ? 0.5 : double(pieces) / (2 * llvm::divideCeil(pieces, 2));
  };
  // Rows unless another choice is better: a contraction without batch dims has one batch,
  // and its loop, which the threads would share, does not exist.
  Split best = Split::Rows;
  double bestBalance = balance(choices[1].second);
  for (auto [choice, pieces] : choices)
    if (balance(pieces) > bestBalance + 0.02) {
      best = choice;
      bestBalance = balance(pieces);
    }
  return best;
}

/// Set `dims` from their joint row-major number.
void Contraction::setFlat(ArrayRef<unsigned> dims, Value number) {
  for (size_t i = dims.size(); i-- > 1;) {
    Value size = constant(space.extent(dims[i]));
    point.setDim(dims[i], arith::RemUIOp::create(builder, loc, number, size));
    number = arith::DivUIOp::create(builder, loc, number, size);
  }
  if (!dims.empty())
    point.setDim(dims.front(), number);
}

void Contraction::emit(bool serial) {
  int64_t pieces = split == Split::Batch  ? count(shape.batch)
                   : split == Split::Rows ? rowTiles * count(outerRows)
                                          : laneBlocks * count(outerPanels);
  std::tie(low, high) = kernel.share(pieces, serial);
  Type element = getElementTypeOrSelf(generic.getResultTypes().front());
  if (schedule.tileEpilogue || schedule.sumsInBlocks())
    tile = kernel.scratch(element, schedule.rows * schedule.groups * schedule.width);
  Value zero = constant(0);
  if (split == Split::Batch)
    emitBatch(low, high);
  else
    emitBatch(zero, constant(count(shape.batch)));
}

void Contraction::emitBatch(Value first, Value end) {
  Value panels = constant(laneBlocks * count(outerPanels));
  auto panelBlocks = [&] {
    if (split == Split::Panels)
      emitPanelBlocks(low, high);
    else
      emitPanelBlocks(constant(0), panels);
  };
  if (shape.batch.empty()) {
    panelBlocks();
    return;
  }
  emitLoop(builder, loc, first, end, 1, {}, [&](Value number, ValueRange) {
    setFlat(shape.batch, number);
    panelBlocks();
    return SmallVector<Value>();
  });
}

void Contraction::emitPanelBlocks(Value first, Value end) {
  emitLoop(builder, loc, first, end, schedule.panels, {}, [&](Value panel, ValueRange) {
    Value blockEnd = arith::MinUIOp::create(builder, loc, add(panel, schedule.panels), end);
    int64_t depth = shape.reduced.empty() ? 1 : space.extent(shape.reduced.back());
    if (shape.reduced.size() != 1 || schedule.chunk == depth) {
      emitRows(panel, blockEnd, constant(0), depth, true, true);
      return SmallVector<Value>();
    }
    for (int64_t start = 0; start < depth; start += schedule.chunk)
      emitRows(panel, blockEnd, constant(start), schedule.chunk, start == 0,
               start + schedule.chunk == depth);
    return SmallVector<Value>();
  });
}

void Contraction::emitRows(Value panel, Value panelEnd, Value chunkStart, int64_t chunkSize,
                           bool first, bool last) {
  Value rowsLow = split == Split::Rows ? low : constant(0);
  Value rowsHigh = split == Split::Rows ? high : constant(rowTiles * count(outerRows));
  int64_t blockLanes = schedule.groups * schedule.width;
  int64_t extent = space.extent(lane);
  int64_t laneTail = extent % blockLanes;
  int64_t rowTail = rowCount % schedule.rows;

  auto ifElse = [&](Value condition, llvm::function_ref<void()> then,
                    llvm::function_ref<void()> otherwise) {
    auto branch = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    then();
    builder.setInsertionPointToStart(branch.elseBlock());
    otherwise();
  };
  auto equals = [&](Value value, int64_t expected) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, value, constant(expected));
  };

  emitLoop(builder, loc, rowsLow, rowsHigh, 1, {}, [&](Value rowNumber, ValueRange) {
    Value rowTile = rowNumber;
    if (!outerRows.empty()) {
      Value tiles = constant(rowTiles);
      rowTile = arith::RemUIOp::create(builder, loc, rowNumber, tiles);
      setFlat(outerRows, arith::DivUIOp::create(builder, loc, rowNumber, tiles));
    }
    Value rowStart = arith::MulIOp::create(builder, loc, rowTile, constant(schedule.rows));
    if (row)
      point.setDim(*row, rowStart);
    Value nextRow;
    if (schedule.prefetch)
      nextRow = arith::MinUIOp::create(builder, loc, add(rowStart, schedule.rows),
                                       constant(std::max<int64_t>(rowCount - schedule.rows, 0)));
    auto panels = [&](int64_t rows) {
      emitLoop(builder, loc, panel, panelEnd, 1, {}, [&](Value number, ValueRange) {
        Value laneBlock = number;
        if (!outerPanels.empty()) {
          Value blocks = constant(laneBlocks);
          laneBlock = laneBlocks == 1
                          ? constant(0)
                          : arith::RemUIOp::create(builder, loc, number, blocks).getResult();
          setFlat(outerPanels,
                  laneBlocks == 1
                      ? number
                      : arith::DivUIOp::create(builder, loc, number, blocks).getResult());
        }
        point.setDim(lane, arith::MulIOp::create(builder, loc, laneBlock, constant(blockLanes)));
        auto tileOf = [&](int64_t lanes) {
          emitTile(rows, llvm::divideCeil(lanes, schedule.width), lanes, chunkStart, chunkSize,
                   first, last, nextRow);
        };
        if (laneTail == 0)
          tileOf(blockLanes);
        else if (laneBlocks == 1)
          tileOf(laneTail);
        else
          ifElse(
              equals(laneBlock, laneBlocks - 1), [&] { tileOf(laneTail); },
              [&] { tileOf(blockLanes); });
        return SmallVector<Value>();
      });
    };
    if (rowTail == 0 || rowTiles == 1)
      panels(rowTiles == 1 ? rowCount : schedule.rows);
    else
      ifElse(
          equals(rowTile, rowTiles - 1), [&] { panels(rowTail); }, [&] { panels(schedule.rows); });
    return SmallVector<Value>();
  });
}

void Contraction::emitTile(int64_t rows, int64_t groups, int64_t valid, Value chunkStart,
                           int64_t chunkSize, bool first, bool last, Value prefetchRow) {
  point.setLanes({static_cast<int64_t>(lane), schedule.width, groups, valid});
  // Partial sums of earlier chunks wait where a root will be stored.
  auto spill = [&]() -> const Buffer & { return kernel.rootBuffers[spillRoot->number]; };
  Value rowStart = row ? point.indexValue(getAffineDimExpr(*row, builder.getContext())) : Value();
  auto atRow = [&](int64_t i) {
    if (row)
      point.setDim(*row, add(rowStart, i));
    point.forget();
  };
  SmallVector<Value> accumulators = emitSums(rows, groups, chunkStart, chunkSize, prefetchRow);
  if (!first) {
    for (int64_t i = 0; i < rows; ++i) {
      atRow(i);
      SmallVector<Value, 4> earlier = point.asVectors(point.load(spill(), spillRoot->index));
      for (int64_t group = 0; group < groups; ++group) {
        Value &sum = accumulators[i * groups + group];
        sum = arith::AddFOp::create(builder, loc, earlier[group], sum);
      }
    }
    if (row)
      point.setDim(*row, rowStart);
  }
  if (last) {
    emitEpilogue(rows, groups, accumulators);
  } else {
    for (int64_t i = 0; i < rows; ++i) {
      atRow(i);
      Emitted sums{SmallVector<Value, 4>(ArrayRef(accumulators).slice(i * groups, groups)), false};
      point.store(spill(), spillRoot->index, sums);
    }
  }
  if (row)
    point.setDim(*row, rowStart);
  point.setLanes(Lanes());
}

SmallVector<Value> Contraction::emitSums(int64_t rows, int64_t groups, Value chunkStart,
                                         int64_t chunkSize, Value prefetchRow) {
  Type element = getElementTypeOrSelf(generic.getResultTypes().front());
  auto type = VectorType::get({schedule.width}, element);
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  SmallVector<Value> zeros(rows * groups, zero);
  ArrayRef<unsigned> dims = shape.reduced;
  if (!schedule.sumsInBlocks())
    return emitReduction(dims, rows, chunkStart, chunkSize, zeros, prefetchRow);
  for (int64_t i = 0; i < rows * groups; ++i)
    vector::StoreOp::create(builder, loc, zero, tile, constant(i * schedule.width));
  auto partial = [&](int64_t i) -> Value {
    return vector::LoadOp::create(builder, loc, type, tile, constant(i * schedule.width));
  };
  auto addBlock = [&](Value start, int64_t size) {
    SmallVector<Value> sums =
        emitReduction(dims.drop_front(schedule.blockDims), rows, start, size, zeros, prefetchRow);
    for (int64_t i = 0; i < rows * groups; ++i) {
      Value sum = arith::AddFOp::create(builder, loc, partial(i), sums[i]);
      vector::StoreOp::create(builder, loc, sum, tile, constant(i * schedule.width));
    }
  };
  std::function<void(ArrayRef<unsigned>)> blocks = [&](ArrayRef<unsigned> outer) {
    if (!outer.empty()) {
      emitLoop(builder, loc, 0, space.extent(outer.front()), 1, {},
               [&](Value variable, ValueRange) {
                 point.setDim(outer.front(), variable);
                 blocks(outer.drop_front());
                 return SmallVector<Value>();
               });
      return;
    }
    emitLoop(builder, loc, 0, chunkSize, schedule.summands, {}, [&](Value offset, ValueRange) {
      addBlock(arith::AddIOp::create(builder, loc, chunkStart, offset), schedule.summands);
      return SmallVector<Value>();
    });
  };
  blocks(dims.take_front(schedule.blockDims));
  SmallVector<Value> totals;
  for (int64_t i = 0; i < rows * groups; ++i)
    totals.push_back(partial(i));
  return totals;
}

SmallVector<Value> Contraction::emitReduction(ArrayRef<unsigned> dims, int64_t rows,
                                              Value chunkStart, int64_t chunkSize,
                                              ArrayRef<Value> accumulators, Value prefetchRow) {
  if (dims.empty())
    return emitStep(rows, accumulators);
  unsigned dim = dims.front();
  if (dims.size() > 1)
    return emitLoop(builder, loc, 0, space.extent(dim), 1, accumulators,
                    [&](Value variable, ValueRange now) {
                      point.setDim(dim, variable);
                      return emitReduction(dims.drop_front(), rows, chunkStart, chunkSize,
                                           SmallVector<Value>(now), prefetchRow);
                    });
  auto steps = [&](Value start, int64_t size, ArrayRef<Value> now) {
    return emitLoop(builder, loc, 0, size, schedule.unroll, now,
                    [&](Value variable, ValueRange carried) {
                      Value base = arith::AddIOp::create(builder, loc, start, variable);
                      SmallVector<Value> sums(carried);
                      for (int64_t step = 0; step < schedule.unroll; ++step) {
                        point.setDim(dim, add(base, step));
                        sums = emitStep(rows, sums);
                      }
                      return sums;
                    });
  };
  if (!prefetchRow)
    return steps(chunkStart, chunkSize, accumulators);
  // The next rows arrive while these compute: one line of each every 16 steps.
  constexpr int64_t lineElements = 16;
  Value memory = point.getBuffer(scalarMemory)->flat;
  return emitLoop(builder, loc, 0, chunkSize, lineElements, accumulators,
                  [&](Value variable, ValueRange carried) {
                    Value start = arith::AddIOp::create(builder, loc, chunkStart, variable);
                    point.setDim(dim, start);
                    Value rowStart = point.indexValue(getAffineDimExpr(*row, builder.getContext()));
                    point.setDim(*row, prefetchRow);
                    Value address = position(scalars);
                    int64_t stride = *space.coefficientOf(scalars, *row);
                    for (int64_t i = 0; i < rows; ++i)
                      memref::PrefetchOp::create(
                          builder, loc, memory, ValueRange{add(address, i * stride)},
                          /*isWrite=*/false, /*localityHint=*/3, /*isDataCache=*/true);
                    point.setDim(*row, rowStart);
                    return steps(start, lineElements, SmallVector<Value>(carried));
                  });
}

SmallVector<Value> Contraction::emitStep(int64_t rows, ArrayRef<Value> accumulators) {
  int64_t stride = row ? *space.coefficientOf(scalars, *row) : 0;
  return emitTileStep(point, {point.getBuffer(scalarMemory)->flat, scalars}, stride,
                      {point.getBuffer(vectorMemory)->flat, vectors}, rows, accumulators);
}

void Contraction::emitEpilogue(int64_t rows, int64_t groups, ArrayRef<Value> accumulators) {
  Value rowStart = row ? point.indexValue(getAffineDimExpr(*row, builder.getContext())) : Value();
  Value product = generic->getResult(0);
  auto storeRoots = [&](Value rowValue, const Emitted &sums) {
    if (row)
      point.setDim(*row, rowValue);
    point.forget();
    point.setOverride(
        [&](PointEmitter &, Value tensor, ArrayRef<AffineExpr>) -> std::optional<Emitted> {
          return tensor == product ? std::optional<Emitted>(sums) : std::nullopt;
        });
    for (const EpilogueRoot &root : roots)
      point.store(kernel.rootBuffers[root.number], root.index,
                  point.emitAt(kernel.roots[root.number], root.index));
    point.setOverride(nullptr);
  };
  if (!schedule.tileEpilogue) {
    for (int64_t i = 0; i < rows; ++i)
      storeRoots(row ? add(rowStart, i) : Value(),
                 {SmallVector<Value, 4>(accumulators.slice(i * groups, groups)), false});
    return;
  }
  auto type = cast<VectorType>(accumulators.front().getType());
  for (auto [i, sum] : llvm::enumerate(accumulators))
    vector::StoreOp::create(builder, loc, sum, tile, constant(i * schedule.width));
  emitLoop(builder, loc, 0, rows, 1, {}, [&](Value i, ValueRange) {
    Value base = arith::MulIOp::create(builder, loc, i, constant(groups * schedule.width));
    Emitted sums{{}, false};
    for (int64_t group = 0; group < groups; ++group)
      sums.parts.push_back(
          vector::LoadOp::create(builder, loc, type, tile, add(base, group * schedule.width)));
    storeRoots(row ? arith::AddIOp::create(builder, loc, rowStart, i).getResult() : Value(), sums);
    return SmallVector<Value>();
  });
}

LogicalResult weft::emitContraction(KernelFunction &kernel) {
  return emitSideBySide<Contraction>(kernel, /*smallFlops=*/400'000);
}
