// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// weft.winograd_conv F(2x2, 3x3), a group of tiles (2x2 output pixels) at a time: the 4x4 input
// pixels of each tile are transformed into 16 values per channel; for each of the 16, a tiles x
// channels x outputs matmul in register tiles; the output transform and the epilogue. Intermediates
// stay in L2. Tiles whose sums are not finite are recomputed as direct convolutions.
#include "compiler/Kernels/Contraction/WinogradSchedule.h"
#include "compiler/Kernels/Emission/Epilogue.h"
#include "compiler/Kernels/Emission/Prefetch.h"
#include "compiler/Kernels/Emission/StoreTarget.h"
#include "compiler/Kernels/Emission/StoredIndex.h"
#include "compiler/Kernels/Emission/WideningLoad.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {

class Winograd : private IndexArithmetic {
public:
  Winograd(KernelFunction &kernel, WinogradConvOp op)
      : IndexArithmetic(kernel.builder, op.getLoc()), kernel(kernel), op(op),
        space(op.getContext()), point(kernel.elementEmitter(space)) {}

  LogicalResult match();
  void emit();

private:
  /// 4x4 vectors, or 2x2 of them.
  using Square = SmallVector<SmallVector<Value, 4>, 4>;
  LogicalResult readSchedule();
  void emitPanels(Value firstTile, Value low, Value high);
  struct Pixel {
    Value row, column;
  };
  Pixel setPixel(Value tile);
  void transformInput(Value firstTile);
  void multiply(Value panel);
  void multiplyRows(Value number, Value rowTile, Value weight);
  SmallVector<Value> sumChannels(Value start, Value row, Value number, Value weight,
                                 Value firstLine);
  void finishTiles(Value firstTile, Value panel);
  void storePixel(Value number, Pixel at);
  Value transformProducts(Value tile);
  void sumWindows();

  Value addVectors(Value a, Value b) { return arith::AddFOp::create(builder, loc, a, b); }
  Value subtractVectors(Value a, Value b) { return arith::SubFOp::create(builder, loc, a, b); }
  Value load(Value memory, Value address) {
    return vector::LoadOp::create(builder, loc, vectorType, memory, address);
  }
  unsigned dimOf(AffineExpr expr) const { return cast<AffineDimExpr>(expr).getPosition(); }
  /// Transformed input: [number of 16][tile][channel], with padded rows.
  Value inputAddress(Value number, Value tile, Value channel) {
    return add(times(add(times(number, groupTiles), tile), rowStride), channel);
  }
  /// Products: [number of 16][tile][lane].
  Value productAddress(Value number, Value tile) {
    return times(add(times(number, groupTiles), tile), lanes());
  }
  int64_t lanes() const { return groups * width; }

  KernelFunction &kernel;
  WinogradConvOp op;
  IndexSpace space;
  ElementEmitter point;
  SmallVector<EpilogueRoot> roots;

  int64_t channels, outputs, tileRows, tileColumns, tiles;
  bool overlaps; ///< some output pixels belong to two tiles
  // Loop variables; those of pixels are separate for the input and the result.
  AffineExpr image, row, column, resultRow, resultColumn, output;
  AffineExpr channel, number, panel, windowRow, windowColumn;
  TileOperand input, transformedWeight, weight;
  Value product; ///< the value that the epilogue reads

  int64_t width, groups, rows; ///< of a register tile
  int64_t groupTiles, tileGroups;
  int64_t rowStride;
  int64_t summands; ///< channels accumulated in registers: rounding errors grow with their number
  int64_t steps;    ///< channels between two prefetches of the next weights
  int64_t linesPerFetch, unroll;
  bool sharesPanels; ///< the threads divide the output panels, not groups of tiles
  VectorType vectorType;
  Value transformed, products;
  Value pixels; ///< output pixels of a tile: [2][2][lane]
};

} // namespace

LogicalResult Winograd::match() {
  ArrayRef<int64_t> in = op.getInput().getType().getShape(), out = op.getType().getShape();
  auto problem = WinogradProblem::of(op);
  channels = problem.channels;
  outputs = problem.outputs;
  tileRows = problem.tileRows;
  tileColumns = problem.tileColumns;
  tiles = problem.tiles;
  rowStride = problem.rowStride();
  overlaps = out[2] % 2 != 0 || out[3] % 2 != 0;
  if (failed(readSchedule()))
    return failure();

  image = space.addDim(out[0]);
  row = space.addDim(in[2]);
  column = space.addDim(in[3]);
  resultRow = space.addDim(out[2]);
  resultColumn = space.addDim(out[3]);
  output = space.addDim(outputs);
  channel = space.addDim(channels);
  number = space.addDim(16);
  panel = space.addDim(outputs / lanes());
  windowRow = space.addDim(3);
  windowColumn = space.addDim(3);
  AffineExpr lane = space.addDim(lanes()), feature = panel * lanes() + lane;
  auto read = storedOperand(point, op.getInput(), {image, channel, row, column});
  auto factor = storedOperand(point, op.getTransformed(), {number, channel, feature});
  auto window = storedOperand(point, op.getWeight(), {feature, channel, windowRow, windowColumn});
  if (!read || !factor || !window || space.coefficientOf(read->position, dimOf(channel)) != 1 ||
      !space.coefficientOf(read->position, dimOf(row)) ||
      !space.coefficientOf(read->position, dimOf(column)) ||
      space.coefficientOf(factor->position, dimOf(lane)) != 1 ||
      space.coefficientOf(factor->position, dimOf(channel)) != lanes() ||
      space.coefficientOf(factor->position, dimOf(number)) != lanes() * channels ||
      space.coefficientOf(window->position, dimOf(lane)) != 1)
    return failure();
  input = *read;
  transformedWeight = *factor;
  weight = *window;
  point.setDim(dimOf(lane), constant(0));

  product = storedResult(op.getResult());
  Index index = physicalIndex(op.getType(), {image, output, resultRow, resultColumn}, space);
  auto found = epilogueRoots(kernel.roots, product, index, space);
  if (failed(found) || found->size() != kernel.roots.size())
    return failure();
  roots = *found;
  return success();
}

/// Takes the numbers of the schedule, if this convolution can be computed with them.
LogicalResult Winograd::readSchedule() {
  auto schedule = readFields<WinogradSchedule>(kernel.schedule.getParts().front());
  width = schedule.width;
  groups = schedule.groups;
  rows = schedule.rows;
  groupTiles = schedule.groupTiles;
  summands = schedule.summands;
  steps = schedule.steps;
  linesPerFetch = schedule.linesPerFetch;
  unroll = schedule.unroll;
  sharesPanels = !schedule.splitsTiles;
  vectorType = VectorType::get({width}, builder.getF32Type());
  tileGroups = llvm::divideCeil(tiles, groupTiles);
  if (channels % summands != 0 || summands % steps != 0)
    return kernel.refuse() << "expected summands to divide " << channels << " channels by " << steps
                           << ", found " << summands;
  if (steps % unroll != 0)
    return kernel.refuse() << "expected unroll to divide " << steps << " steps, found " << unroll;
  if (rows > groupTiles || groupTiles > tiles)
    return kernel.refuse() << "expected tiles from " << rows << " to " << tiles << ", found "
                           << groupTiles;
  if (sharesPanels && tileGroups > 1)
    return kernel.refuse() << "expected split_tiles with " << tileGroups << " groups of tiles";
  return success();
}

void Winograd::emit() {
  transformed = kernel.scratch(builder.getF32Type(), 16 * groupTiles * rowStride);
  products = kernel.scratch(builder.getF32Type(), 16 * groupTiles * lanes());
  pixels = kernel.stackTile(builder.getF32Type(), 4 * lanes());
  int64_t panels = outputs / lanes();
  if (sharesPanels) {
    // Each thread transforms all the input for itself.
    transformInput(constant(0));
    kernel.forEachPart(panels, /*least=*/1,
                       [&](Value low, Value high) { emitPanels(constant(0), low, high); });
  } else {
    kernel.forEachPiece(tileGroups, /*least=*/1, [&](Value number) {
      // The last group overlaps the one before: its shared tiles are computed twice, to the same
      // values.
      Value first = least(times(number, groupTiles), constant(tiles - groupTiles));
      transformInput(first);
      emitPanels(first, constant(0), constant(panels));
    });
  }
  emitBorders(kernel);
  kernel.setWork(2 * 9 * channels * op.getType().getNumElements());
}

/// Panels [low, high) of a group whose first tile is `firstTile`.
void Winograd::emitPanels(Value firstTile, Value low, Value high) {
  emitLoop(builder, loc, low, high, 1, {}, [&](Value panel, ValueRange) {
    multiply(panel);
    finishTiles(firstTile, panel);
    return SmallVector<Value>();
  });
}

/// Sets the point's image, and row and column of the tile's first pixel. For odd sizes, the last
/// tile overlaps the one before.
Winograd::Pixel Winograd::setPixel(Value tile) {
  ArrayRef<int64_t> size = op.getType().getShape().drop_front(2);
  Value inImage = remainderOf(tile, tileRows * tileColumns);
  Pixel unmoved{times(dividedBy(inImage, tileColumns), 2),
                times(remainderOf(inImage, tileColumns), 2)};
  point.setDim(dimOf(image), dividedBy(tile, tileRows * tileColumns));
  point.setDim(dimOf(row), least(unmoved.row, constant(size[0] - 2)));
  point.setDim(dimOf(column), least(unmoved.column, constant(size[1] - 2)));
  return unmoved;
}

/// B^T d B, for 4x4 pixels d: first along columns, then along rows.
void Winograd::transformInput(Value firstTile) {
  int64_t rowStep = *space.coefficientOf(input.position, dimOf(row));
  int64_t columnStep = *space.coefficientOf(input.position, dimOf(column));
  auto transform = [&](ArrayRef<Value> d) -> SmallVector<Value, 4> {
    return {subtractVectors(d[0], d[2]), addVectors(d[1], d[2]), subtractVectors(d[2], d[1]),
            subtractVectors(d[1], d[3])};
  };
  emitLoop(builder, loc, 0, groupTiles, 1, {}, [&](Value tile, ValueRange) {
    setPixel(add(firstTile, tile));
    emitLoop(builder, loc, 0, channels, width, {}, [&](Value first, ValueRange) {
      point.setDim(dimOf(channel), first);
      Value start = point.indexValue(input.position);
      Square halfway;
      for (int64_t j : llvm::seq(4)) {
        SmallVector<Value, 4> pixels;
        for (int64_t i : llvm::seq(4))
          pixels.push_back(load(input.memory, add(start, i * rowStep + j * columnStep)));
        halfway.push_back(transform(pixels));
      }
      for (int64_t i : llvm::seq(4)) {
        SmallVector<Value, 4> across;
        for (int64_t j : llvm::seq(4))
          across.push_back(halfway[j][i]);
        for (auto [j, value] : llvm::enumerate(transform(across)))
          vector::StoreOp::create(builder, loc, value, transformed,
                                  inputAddress(constant(4 * i + int64_t(j)), tile, first));
      }
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  });
}

/// For each of the 16: tiles times channels times the panel's outputs.
void Winograd::multiply(Value panelNumber) {
  point.setDim(dimOf(panel), panelNumber);
  point.setDim(dimOf(channel), constant(0));
  emitLoop(builder, loc, 0, 16, 1, {}, [&](Value each, ValueRange) {
    point.setDim(dimOf(number), each);
    Value start = point.indexValue(transformedWeight.position);
    emitLoop(builder, loc, 0, llvm::divideCeil(groupTiles, rows), 1, {},
             [&](Value rowTile, ValueRange) {
               multiplyRows(each, rowTile, start);
               return SmallVector<Value>();
             });
    return SmallVector<Value>();
  });
}

void Winograd::multiplyRows(Value each, Value rowTile, Value start) {
  constexpr int64_t lineElements = 16;
  // The weights of the next of the 16, or of the next panel, come from memory: each row tile
  // prefetches a share of them.
  int64_t share = channels / steps * linesPerFetch * lineElements;
  Value firstLine = add(add(start, channels * lanes()), times(rowTile, share));
  Value first = least(times(rowTile, rows), constant(groupTiles - rows));
  auto eachSum = [&](llvm::function_ref<void(int64_t, Value)> body) {
    for (int64_t i = 0; i < rows; ++i) {
      Value address = productAddress(each, add(first, i));
      for (int64_t group = 0; group < groups; ++group)
        body(i * groups + group, add(address, group * width));
    }
  };
  SmallVector<Value> sums = sumChannels(constant(0), first, each, start, firstLine);
  eachSum([&](int64_t i, Value address) {
    vector::StoreOp::create(builder, loc, sums[i], products, address);
  });
  emitLoop(builder, loc, constant(summands), constant(channels), summands, {},
           [&](Value channel, ValueRange) {
             SmallVector<Value> more = sumChannels(channel, first, each, start, firstLine);
             eachSum([&](int64_t i, Value address) {
               Value sum = addVectors(load(products, address), more[i]);
               vector::StoreOp::create(builder, loc, sum, products, address);
             });
             return SmallVector<Value>();
           });
}

/// Accumulates a register tile over `summands` channels from `start` on, row by row.
SmallVector<Value> Winograd::sumChannels(Value start, Value firstRow, Value each, Value weightStart,
                                         Value firstLine) {
  constexpr int64_t lineElements = 16;
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vectorType));
  Value inputStart = inputAddress(each, firstRow, constant(0));
  auto step = [&](Value channel, ArrayRef<Value> sums) {
    SmallVector<Value> vectors, next(sums);
    Value address = add(weightStart, times(channel, lanes()));
    for (int64_t group = 0; group < groups; ++group)
      vectors.push_back(load(transformedWeight.memory, add(address, group * width)));
    Value scalars = add(inputStart, channel);
    for (int64_t i = 0; i < rows; ++i) {
      Value scalar =
          loadBroadcast(builder, loc, vectorType, transformed, add(scalars, i * rowStride));
      for (int64_t group = 0; group < groups; ++group) {
        Value &sum = next[i * groups + group];
        sum = vector::FMAOp::create(builder, loc, scalar, vectors[group], sum);
      }
    }
    return next;
  };
  SmallVector<Value> zeros(rows * groups, zero);
  return emitLoop(
      builder, loc, start, add(start, summands), steps, zeros, [&](Value channel, ValueRange now) {
        Value line = add(firstLine, times(dividedBy(channel, steps), linesPerFetch * lineElements));
        for (int64_t i = 0; i < linesPerFetch; ++i)
          emitPrefetch(builder, loc, transformedWeight.memory, add(line, i * lineElements),
                       CacheLevel::Second);
        return emitLoop(builder, loc, 0, steps, unroll, now, [&](Value offset, ValueRange carried) {
          SmallVector<Value> sums(carried);
          Value first = add(channel, offset);
          for (int64_t i = 0; i < unroll; ++i)
            sums = step(add(first, i), sums);
          return sums;
        });
      });
}

/// A^T m A, for the 4x4 products m of a tile: its pixels, and whether some are not finite.
Value Winograd::transformProducts(Value tile) {
  auto words = vectorType.cloneWith({}, builder.getI32Type());
  auto splat = [&](uint32_t bits) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(words, APInt(/*numBits=*/32, bits)));
  };
  auto transform = [&](ArrayRef<Value> m) -> SmallVector<Value, 4> {
    Value sum = addVectors(m[1], m[2]), difference = subtractVectors(m[1], m[2]);
    return {addVectors(m[0], sum), subtractVectors(difference, m[3])};
  };
  Value largest = splat(0);
  for (int64_t group = 0; group < groups; ++group) {
    Square halfway;
    for (int64_t j : llvm::seq(4)) {
      SmallVector<Value, 4> down;
      for (int64_t i : llvm::seq(4))
        down.push_back(
            load(products, add(productAddress(constant(4 * i + j), tile), group * width)));
      halfway.push_back(transform(down));
    }
    for (int64_t i : llvm::seq(2)) {
      SmallVector<Value, 4> across;
      for (int64_t j : llvm::seq(4))
        across.push_back(halfway[j][i]);
      for (auto [j, value] : llvm::enumerate(transform(across))) {
        vector::StoreOp::create(builder, loc, value, pixels,
                                constant((2 * i + int64_t(j)) * lanes() + group * width));
        Value bits = arith::BitcastOp::create(builder, loc, words, value);
        Value magnitude = arith::AndIOp::create(builder, loc, bits, splat(0x7fffffff));
        largest = arith::MaxUIOp::create(builder, loc, largest, magnitude);
      }
    }
  }
  Value all = vector::ReductionOp::create(builder, loc, vector::CombiningKind::MAXUI, largest);
  Value infinity = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0x7f800000));
  return is(arith::CmpIPredicate::uge, all, infinity);
}

/// The pixels of the point's tile by direct convolution with the original weight.
void Winograd::sumWindows() {
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vectorType));
  SmallVector<Value> zeros(groups, zero);
  Value firstRow = point.indexValue(row), firstColumn = point.indexValue(column);
  auto sumOneWindow = [&](ValueRange before) {
    return emitLoop(builder, loc, 0, channels, 1, before, [&](Value each, ValueRange now) {
      point.setDim(dimOf(channel), each);
      Value scalar =
          loadBroadcast(builder, loc, vectorType, input.memory, point.indexValue(input.position));
      Value address = point.indexValue(weight.position);
      SmallVector<Value> sums;
      for (int64_t group = 0; group < groups; ++group) {
        Value vector = load(weight.memory, add(address, group * width));
        sums.push_back(vector::FMAOp::create(builder, loc, scalar, vector, now[group]));
      }
      return sums;
    });
  };
  emitLoop(builder, loc, 0, 4, 1, {}, [&](Value pixel, ValueRange) {
    Value pixelRow = add(firstRow, dividedBy(pixel, 2));
    Value pixelColumn = add(firstColumn, remainderOf(pixel, 2));
    auto sumAt = [&](Value at, ValueRange now) {
      point.setDim(dimOf(windowRow), dividedBy(at, 3));
      point.setDim(dimOf(windowColumn), remainderOf(at, 3));
      point.setDim(dimOf(row), add(pixelRow, dividedBy(at, 3)));
      point.setDim(dimOf(column), add(pixelColumn, remainderOf(at, 3)));
      return sumOneWindow(now);
    };
    for (auto [group, sum] : llvm::enumerate(emitLoop(builder, loc, 0, 9, 1, zeros, sumAt)))
      vector::StoreOp::create(builder, loc, sum, pixels,
                              add(times(pixel, lanes()), int64_t(group) * width));
    return SmallVector<Value>();
  });
  point.setDim(dimOf(row), firstRow);
  point.setDim(dimOf(column), firstColumn);
}

/// Passes the pixels of a panel, tile by tile, through the epilogue.
void Winograd::finishTiles(Value firstTile, Value panelNumber) {
  point.setDim(dimOf(panel), panelNumber);
  emitLoop(builder, loc, 0, groupTiles, 1, {}, [&](Value tile, ValueRange) {
    Value failed = transformProducts(tile);
    Pixel own = setPixel(add(firstTile, tile));
    point.setDim(dimOf(output), times(panelNumber, lanes()));
    emitIf(builder, loc, failed, [&] { sumWindows(); });
    Value firstRow = point.indexValue(row), firstColumn = point.indexValue(column);
    emitLoop(builder, loc, 0, 4, 1, {}, [&](Value pixel, ValueRange) {
      Pixel at{add(firstRow, dividedBy(pixel, 2)), add(firstColumn, remainderOf(pixel, 2))};
      if (!overlaps) {
        storePixel(pixel, at);
        return SmallVector<Value>();
      }
      // A pixel that two tiles compute is stored by the first: the other may round differently.
      Value isOwn =
          arith::AndIOp::create(builder, loc, is(arith::CmpIPredicate::uge, at.row, own.row),
                                is(arith::CmpIPredicate::uge, at.column, own.column));
      emitIf(builder, loc, isOwn, [&] { storePixel(pixel, at); });
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  });
}

/// Stores pixel `number` of a tile, at position `at`, through the epilogue.
void Winograd::storePixel(Value number, Pixel at) {
  point.setDim(dimOf(resultRow), at.row);
  point.setDim(dimOf(resultColumn), at.column);
  point.setLanes({static_cast<int64_t>(dimOf(output)), width, groups, lanes()});
  Emitted sums{{}, false};
  for (int64_t group = 0; group < groups; ++group)
    sums.parts.push_back(load(pixels, add(times(number, lanes()), group * width)));
  point.forget();
  storeRoots(kernel, point, roots, product, sums);
  point.setLanes(Lanes());
}

LogicalResult weft::emitWinograd(KernelFunction &kernel) {
  auto op = onlyOp<WinogradConvOp>(kernel.source);
  if (!op)
    return failure();
  Winograd winograd(kernel, op);
  if (failed(winograd.match()))
    return failure();
  winograd.emit();
  return success();
}
