// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sort: rows are shared among the threads, and each is put in order by itself, by one of two
// stable methods on integer keys (SortKey.h). A short list of the best is kept sorted by
// insertion, while vectors skip the elements that are worse than its last; anything longer
// is sorted by the keys' bytes, least significant first (radix sort).
#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emitters.h"
#include "compiler/Kernels/Reductions.h"
#include "compiler/Kernels/SortKey.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

namespace {

class Sort {
public:
  Sort(KernelFunction &kernel, SortOp op)
      : kernel(kernel), builder(kernel.builder), loc(op.getLoc()), op(op), space(op.getContext()),
        point(kernel.pointEmitter(space)) {}

  void emit(bool serial);

private:
  void planRow();
  void emitRow(ArrayRef<unsigned> rest, Value row);
  void setRow(Value row);

  void keepBest();
  void insert(Value key, Value position, Value filled);
  void insertBetter(Value position);

  void sortBytes();
  void storeKeys();
  void sortByte(int64_t byte, bool isFirst);

  void storeResults();

  Value keyAt(Value position);
  Value load(Value buffer, Value at) { return memref::LoadOp::create(builder, loc, buffer, at); }
  void store(Value value, Value buffer, Value at) {
    memref::StoreOp::create(builder, loc, value, buffer, at);
  }
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  /// An index as `positions` hold it, and back.
  Value stored(Value index) {
    Type type = cast<MemRefType>(positions.getType()).getElementType();
    return arith::IndexCastOp::create(builder, loc, type, index);
  }
  Value indexOf(Value position) {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), position);
  }
  Value add(Value lhs, Value rhs) { return arith::AddIOp::create(builder, loc, lhs, rhs); }
  Value less(Value lhs, Value rhs) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, lhs, rhs);
  }

  KernelFunction &kernel;
  OpBuilder &builder;
  Location loc;
  SortOp op;
  IndexSpace space;
  PointEmitter point;

  int64_t size = 0, count = 0, width = 1;
  SmallVector<int64_t> rowShape;
  SmallVector<unsigned> rowDims;
  unsigned along = 0, place = 0; ///< loop variables over the dim: of the operand, of the results
  Index operandIndex, resultIndex;
  Value keys, positions;           ///< in order, when a row is done
  Value otherKeys, otherPositions; ///< what the next byte is sorted into
  Value counters;
};

} // namespace

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The longest list that is kept by insertion: beyond it moving elements costs more than
/// passes over the row.
constexpr int64_t longestList = 64;
constexpr int64_t byteValues = 256;

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void Sort::planRow() {
  RankedTensorType type = tensorType(op.getOperand());
  int64_t dim = op.getDim();
  size = type.getDimSize(dim);
  count = op.getCount();
  width = kernel.target.lanes(std::max(32u, type.getElementTypeBitWidth()));
  for (auto [number, extent] : llvm::enumerate(type.getShape())) {
    if (static_cast<int64_t>(number) == dim) {
      operandIndex.push_back(space.addDim(size));
      along = space.size() - 1;
      resultIndex.push_back(space.addDim(count));
      place = space.size() - 1;
      continue;
    }
    AffineExpr expr = extent == 1 ? space.constant(0) : space.addDim(extent);
    if (extent != 1) {
      rowDims.push_back(space.size() - 1);
      rowShape.push_back(extent);
    }
    operandIndex.push_back(expr);
    resultIndex.push_back(expr);
  }
  Type key = builder.getIntegerType(type.getElementTypeBitWidth());
  Type position = builder.getIntegerType(size > std::numeric_limits<int32_t>::max() ? 64 : 32);
  bool isList = count <= longestList;
  int64_t held = isList ? count : size;
  keys = kernel.scratch(key, held);
  positions = kernel.scratch(position, held);
  if (isList)
    return;
  otherKeys = kernel.scratch(key, held);
  otherPositions = kernel.scratch(position, held);
  counters = kernel.scratch(position, byteValues);
}

void Sort::setRow(Value row) {
  for (int64_t i = rowDims.size() - 1; i >= 0; --i) {
    Value extent = constant(rowShape[i]);
    point.setDim(rowDims[i], i ? arith::RemUIOp::create(builder, loc, row, extent) : row);
    row = arith::DivUIOp::create(builder, loc, row, extent);
  }
}

void Sort::emit(bool serial) {
  planRow();
  auto [low, high] = kernel.share(ShapedType::getNumElements(rowShape), serial);
  emitLoop(builder, loc, low, high, 1, {}, [&](Value row, ValueRange) {
    setRow(row);
    if (count <= longestList)
      keepBest();
    else
      sortBytes();
    storeResults();
    return SmallVector<Value>();
  });
}

Value Sort::keyAt(Value position) {
  point.setDim(along, position);
  point.forget();
  Value element = point.emitAt(op.getOperand(), operandIndex).parts.front();
  return sortKey(builder, loc, element, op.getDescending());
}

void Sort::storeResults() {
  emitLoop(builder, loc, 0, count, 1, {}, [&](Value at, ValueRange) {
    Value position = indexOf(load(positions, at));
    point.setDim(along, position);
    point.setDim(place, at);
    point.forget();
    for (auto [root, buffer] : llvm::zip_equal(kernel.roots, kernel.rootBuffers)) {
      if (root == op.getValues()) {
        point.store(buffer, resultIndex, point.emitAt(op.getOperand(), operandIndex));
        continue;
      }
      Value index = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), position);
      point.store(buffer, resultIndex, {{index}, true});
    }
    return SmallVector<Value>();
  });
  point.forget();
}

//===----------------------------------------------------------------------===//
// A list of the best
//===----------------------------------------------------------------------===//

/// Move what is greater than `key` among the first `filled` elements of the list up by one,
/// and put `key` in the gap.
void Sort::insert(Value key, Value position, Value filled) {
  Value zero = constant(0), one = constant(1);
  auto before = [&](OpBuilder &, Location, ValueRange gap) {
    // The list's first element stands in for the one ahead of it.
    Value inside = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, gap[0], zero);
    Value below = arith::SelectOp::create(builder, loc, inside,
                                          arith::SubIOp::create(builder, loc, gap[0], one), zero);
    Value greater = less(key, load(keys, below));
    Value moves = arith::AndIOp::create(builder, loc, inside, greater);
    scf::ConditionOp::create(builder, loc, moves, gap);
  };
  auto after = [&](OpBuilder &, Location, ValueRange gap) {
    Value below = arith::SubIOp::create(builder, loc, gap[0], one);
    store(load(keys, below), keys, gap[0]);
    store(load(positions, below), positions, gap[0]);
    scf::YieldOp::create(builder, loc, below);
  };
  auto loop = scf::WhileOp::create(builder, loc, TypeRange(builder.getIndexType()),
                                   ValueRange(filled), before, after);
  store(key, keys, loop.getResult(0));
  store(stored(position), positions, loop.getResult(0));
}

void Sort::keepBest() {
  if (count == 0)
    return;
  emitLoop(builder, loc, 0, count, 1, {}, [&](Value position, ValueRange) {
    insert(keyAt(position), position, position);
    return SmallVector<Value>();
  });
  if (count == size)
    return;
  Value first = constant(count), last = constant(count - 1);
  emitLaneLoop(point, along, first, size - count, width, {}, [&](Value offset, ValueRange) {
    SmallVector<Value, 4> elements = point.asVectors(point.emitAt(op.getOperand(), operandIndex));
    Value worst = load(keys, last), any;
    for (auto [group, element] : llvm::enumerate(elements)) {
      Value key = sortKey(builder, loc, element, op.getDescending());
      Value limit = vector::BroadcastOp::create(builder, loc, key.getType(), worst);
      Value better = less(key, limit);
      if (Value mask = point.validMask(group))
        better = arith::AndIOp::create(builder, loc, better, mask);
      any = any ? arith::OrIOp::create(builder, loc, any, better).getResult() : better;
    }
    any = vector::ReductionOp::create(builder, loc, vector::CombiningKind::OR, any);
    int64_t lanes = point.getLanes().valid;
    auto branch = scf::IfOp::create(builder, loc, any, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    point.setLanes(Lanes());
    Value base = add(first, offset);
    emitLoop(builder, loc, 0, lanes, 1, {}, [&](Value lane, ValueRange) {
      insertBetter(add(base, lane));
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  });
  point.setLanes(Lanes());
}

/// The element at `position`, if it is better than the list's last, in its place.
void Sort::insertBetter(Value position) {
  Value key = keyAt(position), last = constant(count - 1);
  auto branch =
      scf::IfOp::create(builder, loc, less(key, load(keys, last)), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  insert(key, position, last);
}

//===----------------------------------------------------------------------===//
// Byte by byte
//===----------------------------------------------------------------------===//

void Sort::storeKeys() {
  Buffer buffer{keys, {size}};
  Index index{getAffineDimExpr(along, builder.getContext())};
  emitLaneLoop(point, along, constant(0), size, width, {}, [&](Value, ValueRange) {
    Emitted found{{}, false};
    for (Value element : point.asVectors(point.emitAt(op.getOperand(), operandIndex)))
      found.parts.push_back(sortKey(builder, loc, element, op.getDescending()));
    point.store(buffer, index, found);
    return SmallVector<Value>();
  });
  point.setLanes(Lanes());
}

void Sort::sortBytes() {
  storeKeys();
  int64_t bytes = cast<MemRefType>(keys.getType()).getElementTypeBitWidth() / 8;
  for (int64_t byte = 0; byte < bytes; ++byte) {
    sortByte(byte, /*isFirst=*/byte == 0);
    std::swap(keys, otherKeys);
    std::swap(positions, otherPositions);
  }
}

/// Count the values of one byte, add them up to where each value starts, and deal the
/// elements out, in order.
void Sort::sortByte(int64_t byte, bool isFirst) {
  Value zero = stored(constant(0)), one = stored(constant(1));
  Type type = cast<MemRefType>(keys.getType()).getElementType();
  auto counterOf = [&](Value key) -> Value {
    Value shift = arith::ConstantIntOp::create(builder, loc, type, 8 * byte);
    Value digit = arith::ShRUIOp::create(builder, loc, key, shift);
    digit = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), digit);
    return arith::AndIOp::create(builder, loc, digit, constant(byteValues - 1));
  };
  emitLoop(builder, loc, 0, byteValues, 1, {}, [&](Value value, ValueRange) {
    store(zero, counters, value);
    return SmallVector<Value>();
  });
  emitLoop(builder, loc, 0, size, 1, {}, [&](Value at, ValueRange) {
    Value counter = counterOf(load(keys, at));
    store(add(load(counters, counter), one), counters, counter);
    return SmallVector<Value>();
  });
  emitLoop(builder, loc, 0, byteValues, 1, zero, [&](Value value, ValueRange start) {
    Value next = add(start.front(), load(counters, value));
    store(start.front(), counters, value);
    return SmallVector<Value>{next};
  });
  emitLoop(builder, loc, 0, size, 1, {}, [&](Value at, ValueRange) {
    Value key = load(keys, at), counter = counterOf(key);
    Value next = load(counters, counter), to = indexOf(next);
    store(add(next, one), counters, counter);
    store(key, otherKeys, to);
    store(isFirst ? stored(at) : load(positions, at), otherPositions, to);
    return SmallVector<Value>();
  });
}

LogicalResult weft::emitSort(KernelFunction &kernel) {
  auto ops = kernel.source.getOps<SortOp>();
  if (std::distance(ops.begin(), ops.end()) != 1)
    return failure();
  SortOp op = *ops.begin();
  if (llvm::any_of(kernel.roots, [&](Value root) { return root.getDefiningOp() != op; }))
    return failure();
  // Dividing work has a price: a barrier, and the caches of two cores.
  constexpr int64_t smallWork = 4 << 10;
  int64_t elements = tensorType(op.getOperand()).getNumElements();
  bool serial = elements < smallWork;
  if (tensorType(op.getValues()).getNumElements() != 0)
    Sort(kernel, op).emit(serial);
  kernel.setWork(elements, serial);
  kernel.setSchedule({{"lanes", kernel.target.lanes(32)}});
  return success();
}
