// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sort: each row is sorted by one thread, stably, on integer keys (SortKey.h) packed with their
// positions. A short top-k list is kept by insertion; vectors skip elements worse than its last.
// For a longer one, elements better than a limit are collected; a full buffer is sorted, truncated
// to k, and its last is the new limit, so that in any input order an element costs a few sorted
// ones at most. Bools are partitioned (Partition.cpp). All else is an LSD radix sort by bytes.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"
#include "compiler/Kernels/Nest/Reductions.h"
#include "compiler/Kernels/Ordering/Partition.h"
#include "compiler/Kernels/Ordering/SortKey.h"
#include "compiler/Kernels/Ordering/SortSchedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

namespace {

class Sort : private IndexArithmetic {
public:
  Sort(KernelFunction &kernel, SortOp op)
      : IndexArithmetic(kernel.builder, op.getLoc()), kernel(kernel), op(op),
        space(op.getContext()), point(kernel.elementEmitter(space)),
        size(tensorType(op.getOperand()).getDimSize(op.getDim())), count(op.getCount()) {}

  /// Fails, with a diagnostic, on what cannot be honoured.
  LogicalResult read(DictionaryAttr part);
  void emit();

private:
  void planRow();
  void emitRow(ArrayRef<unsigned> rest, Value row);
  void setRow(Value row);

  /// Visits, in order, the elements from `first` on that are better than a limit.
  void forBetter(int64_t first, llvm::function_ref<Value()> limit,
                 llvm::function_ref<void(Value base, int64_t lanes)> take);

  void keepBest();
  void insert(Value entry, Value filled);
  void insertBetter(Value entry);
  void whereAny(Value mask, llvm::function_ref<void()> body);

  void gatherCandidates();

  void sortBytes(Value filled, bool ofRow = false);
  void sortByte(int64_t byte, Value filled, bool ofRow);
  void setEntry(Value at) { store(entryOf(keyAt(at), at), entries, at); }

  void storeResults();

  Value keyAt(Value position);
  Value load(Value buffer, Value at) { return memref::LoadOp::create(builder, loc, buffer, at); }
  void store(Value value, Value buffer, Value at) {
    memref::StoreOp::create(builder, loc, value, buffer, at);
  }
  Value number(Type type, int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, type, value);
  }
  /// A key packed above its position, and the two unpacked.
  Value entryOf(Value key, Value position);
  Value keyOf(Value entry);
  Value positionOf(Value entry);
  Value less(Value lhs, Value rhs) { return is(arith::CmpIPredicate::ult, lhs, rhs); }

  VectorBlock vectors() const { return {schedule.width, schedule.groups}; }

  KernelFunction &kernel;
  SortOp op;
  IndexSpace space;
  ElementEmitter point;

  SortSchedule schedule;
  int64_t size, count;
  SmallVector<int64_t> rowShape;
  SmallVector<unsigned> rowDims;
  unsigned along = 0, place = 0; ///< loop variables over the dim: of the operand, of the results
  Index operandIndex, resultIndex;
  Type keyType, entryType;
  Value entries;      ///< sorted when a row is done
  Value otherEntries; ///< destination of a radix pass
  Value counters;
  Value seen;          ///< keys of one vector
  Value filled, limit; ///< number of candidates; key that later ones have to be better than
};

} // namespace

constexpr int64_t positionBits = 32;
constexpr int64_t byteValues = 256;

LogicalResult Sort::read(DictionaryAttr part) {
  schedule = readFields<SortSchedule>(part);
  int64_t bytes = tensorType(op.getOperand()).getElementTypeBitWidth() / 8;
  if (schedule.method == SortSchedule::Partition) {
    if (!isPartition(op))
      return kernel.refuse()
             << "schedule: expected method \"partition\" only of whole rows of bools";
    if (schedule.width != kernel.target.lanes(64))
      return kernel.refuse() << "schedule: expected lanes " << kernel.target.lanes(64)
                             << " of a partition, found " << schedule.width;
    return success();
  }
  if (size > std::numeric_limits<int32_t>::max())
    return failure();
  if (schedule.method != SortSchedule::Candidates)
    return success();
  // An even number of radix passes ends in the buffer it began in.
  if (count == 0 || bytes % 2 != 0)
    return kernel.refuse() << "schedule: expected method not to be \"candidates\" of " << count
                           << " elements of " << bytes << " bytes";
  if (schedule.capacity < count || schedule.capacity > size)
    return kernel.refuse() << "schedule: expected capacity from " << count << " to " << size
                           << ", found " << schedule.capacity;
  return success();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void Sort::planRow() {
  RankedTensorType type = tensorType(op.getOperand());
  int64_t dim = op.getDim();
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
  int64_t bits = type.getElementTypeBitWidth();
  keyType = builder.getIntegerType(bits);
  entryType = builder.getIntegerType(bits + positionBits <= 64 ? 64 : 128);
  int64_t space = size;
  if (schedule.method == SortSchedule::List)
    space = count;
  if (schedule.method == SortSchedule::Candidates) {
    // The last blocks of vectors may exceed the capacity.
    space = schedule.capacity + 2 * vectors().elements();
    filled = kernel.scratch(builder.getI64Type(), 1);
    limit = kernel.scratch(keyType, 1);
  }
  entries = kernel.scratch(entryType, space);
  if (schedule.method != SortSchedule::Radix)
    seen = kernel.scratch(keyType, schedule.width);
  if (schedule.method == SortSchedule::List)
    return;
  otherEntries = kernel.scratch(entryType, space);
  counters = kernel.scratch(builder.getI32Type(), byteValues);
}

void Sort::setRow(Value row) {
  for (int64_t i = rowDims.size() - 1; i >= 0; --i) {
    Value extent = constant(rowShape[i]);
    point.setDim(rowDims[i], i ? arith::RemUIOp::create(builder, loc, row, extent) : row);
    row = arith::DivUIOp::create(builder, loc, row, extent);
  }
}

void Sort::emit() {
  if (schedule.method == SortSchedule::Partition)
    return emitPartition(kernel, op, schedule);
  planRow();
  auto [low, high] = kernel.share(ShapedType::getNumElements(rowShape));
  emitLoop(builder, loc, low, high, 1, {}, [&](Value row, ValueRange) {
    setRow(row);
    switch (schedule.method) {
    case SortSchedule::List:
      keepBest();
      break;
    case SortSchedule::Candidates:
      gatherCandidates();
      break;
    case SortSchedule::Radix:
      sortBytes(constant(size), /*ofRow=*/true);
      break;
    case SortSchedule::Partition:
      llvm_unreachable("has loops of its own");
    }
    storeResults();
    return SmallVector<Value>();
  });
}

Value Sort::entryOf(Value key, Value position) {
  Value high = arith::ExtUIOp::create(builder, loc, entryType, key);
  high = arith::ShLIOp::create(builder, loc, high, number(entryType, positionBits));
  Value low = arith::IndexCastUIOp::create(builder, loc, entryType, position);
  return arith::OrIOp::create(builder, loc, high, low);
}

Value Sort::keyOf(Value entry) {
  Value high = arith::ShRUIOp::create(builder, loc, entry, number(entryType, positionBits));
  return arith::TruncIOp::create(builder, loc, keyType, high);
}

Value Sort::positionOf(Value entry) {
  Value low = arith::TruncIOp::create(builder, loc, builder.getI32Type(), entry);
  return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), low);
}

Value Sort::keyAt(Value position) {
  point.setDim(along, position);
  point.forget();
  Value element = point.emitAt(op.getOperand(), operandIndex).parts.front();
  return sortKey(builder, loc, element, op.getDescending());
}

void Sort::storeResults() {
  emitLoop(builder, loc, 0, count, 1, {}, [&](Value at, ValueRange) {
    Value position = positionOf(load(entries, at));
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

/// Inserts `entry` into the sorted list's first `filled` elements, moving greater ones up by one.
void Sort::insert(Value entry, Value filled) {
  Value zero = constant(0), one = constant(1);
  auto before = [&](OpBuilder &, Location, ValueRange gap) {
    // Clamp the index, so that the load is in bounds.
    Value inside = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, gap[0], zero);
    Value below = arith::SelectOp::create(builder, loc, inside,
                                          arith::SubIOp::create(builder, loc, gap[0], one), zero);
    Value greater = less(entry, load(entries, below));
    Value moves = arith::AndIOp::create(builder, loc, inside, greater);
    scf::ConditionOp::create(builder, loc, moves, gap);
  };
  auto after = [&](OpBuilder &, Location, ValueRange gap) {
    Value below = arith::SubIOp::create(builder, loc, gap[0], one);
    store(load(entries, below), entries, gap[0]);
    scf::YieldOp::create(builder, loc, below);
  };
  auto loop = scf::WhileOp::create(builder, loc, TypeRange(builder.getIndexType()),
                                   ValueRange(filled), before, after);
  store(entry, entries, loop.getResult(0));
}

void Sort::whereAny(Value mask, llvm::function_ref<void()> body) {
  Value any = vector::ReductionOp::create(builder, loc, vector::CombiningKind::OR, mask);
  emitIf(builder, loc, any, body);
}

void Sort::keepBest() {
  if (count == 0)
    return;
  emitLoop(builder, loc, 0, count, 1, {}, [&](Value position, ValueRange) {
    insert(entryOf(keyAt(position), position), position);
    return SmallVector<Value>();
  });
  if (count == size)
    return;
  auto worst = [&] { return keyOf(load(entries, constant(count - 1))); };
  forBetter(count, worst, [&](Value base, int64_t lanes) {
    emitLoop(builder, loc, 0, lanes, 1, {}, [&](Value lane, ValueRange) {
      insertBetter(entryOf(load(seen, lane), add(base, lane)));
      return SmallVector<Value>();
    });
  });
}

/// `take` gets vectors with at least one such element: their keys are in `seen`, for elements from
/// `base`. `limit` is evaluated once per block of vectors.
void Sort::forBetter(int64_t first, llvm::function_ref<Value()> limit,
                     llvm::function_ref<void(Value base, int64_t lanes)> take) {
  Value start = constant(first);
  emitLaneLoop(point, along, start, size - first, vectors(), {}, [&](Value offset, ValueRange) {
    Value key = limit(), any;
    SmallVector<Value, 4> elements = point.asVectors(point.emitAt(op.getOperand(), operandIndex));
    SmallVector<Value> found, better;
    for (auto [group, element] : llvm::enumerate(elements)) {
      found.push_back(sortKey(builder, loc, element, op.getDescending()));
      Value limits = vector::BroadcastOp::create(builder, loc, found.back().getType(), key);
      better.push_back(less(found.back(), limits));
      if (Value mask = point.validMask(group))
        better.back() = arith::AndIOp::create(builder, loc, better.back(), mask);
      any = any ? arith::OrIOp::create(builder, loc, any, better.back()) : better.back();
    }
    Lanes spread = point.getLanes();
    whereAny(any, [&] {
      point.setLanes(Lanes());
      for (auto [group, mask] : llvm::enumerate(better))
        whereAny(mask, [&, group = static_cast<int64_t>(group)] {
          vector::StoreOp::create(builder, loc, found[group], seen, constant(0));
          int64_t begin = group * schedule.width;
          int64_t end = std::min(begin + schedule.width, spread.valid);
          take(add(add(start, offset), constant(begin)), end - begin);
        });
    });
    return SmallVector<Value>();
  });
  point.setLanes(Lanes());
}

/// Inserts `entry` if it is better than the list's last.
void Sort::insertBetter(Value entry) {
  Value last = constant(count - 1);
  emitIf(builder, loc, less(entry, load(entries, last)), [&] { insert(entry, last); });
}

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

void Sort::gatherCandidates() {
  Value zero = constant(0), last = constant(count - 1), most = constant(schedule.capacity);
  auto numberFilled = [&] {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), load(filled, zero))
        .getResult();
  };
  auto setNumber = [&](Value value) {
    store(arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value), filled, zero);
  };
  emitLoop(builder, loc, 0, schedule.capacity, 1, {}, [&](Value at, ValueRange) {
    setEntry(at);
    return SmallVector<Value>();
  });
  setNumber(most);
  // Stability: a later element with the greatest key is not better than any of the first.
  store(number(keyType, -1), limit, zero);
  auto refined = [&] {
    Value isFull = is(arith::CmpIPredicate::uge, numberFilled(), most);
    emitIf(builder, loc, isFull, [&] {
      sortBytes(numberFilled());
      setNumber(constant(count));
      store(keyOf(load(entries, last)), limit, zero);
    });
  };
  auto limitOfBlock = [&] {
    // The remainder after the whole blocks fits the extra space.
    if (point.getLanes().valid == vectors().elements())
      refined();
    return load(limit, zero);
  };
  forBetter(schedule.capacity, limitOfBlock, [&](Value base, int64_t lanes) {
    Value bound = load(limit, zero);
    auto end = emitLoop(builder, loc, 0, lanes, 1, numberFilled(), [&](Value lane, ValueRange at) {
      Value key = load(seen, lane);
      store(entryOf(key, add(base, lane)), entries, at.front());
      Value taken =
          arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), less(key, bound));
      return SmallVector<Value>{add(at.front(), taken)};
    });
    setNumber(end.front());
  });
  sortBytes(numberFilled());
}

//===----------------------------------------------------------------------===//
// Byte by byte
//===----------------------------------------------------------------------===//

/// `ofRow`: the first pass also creates the entries from the row.
void Sort::sortBytes(Value filled, bool ofRow) {
  for (int64_t byte = 0; byte < keyType.getIntOrFloatBitWidth() / 8; ++byte) {
    sortByte(byte, filled, ofRow && byte == 0);
    std::swap(entries, otherEntries);
  }
}

/// A radix pass: histogram of one byte, prefix sum, stable scatter.
void Sort::sortByte(int64_t byte, Value filled, bool ofRow) {
  Value zero = number(builder.getI32Type(), 0), one = number(builder.getI32Type(), 1);
  Value start = constant(0);
  auto counterOf = [&](Value from) -> Value {
    Value shifted =
        arith::ShRUIOp::create(builder, loc, from, number(entryType, positionBits + 8 * byte));
    Value digit = arith::TruncIOp::create(builder, loc, builder.getI8Type(), shifted);
    return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), digit);
  };
  emitLoop(builder, loc, 0, byteValues, 1, {}, [&](Value value, ValueRange) {
    store(zero, counters, value);
    return SmallVector<Value>();
  });
  emitLoop(builder, loc, start, filled, 1, {}, [&](Value at, ValueRange) {
    if (ofRow)
      setEntry(at);
    Value counter = counterOf(load(entries, at));
    store(add(load(counters, counter), one), counters, counter);
    return SmallVector<Value>();
  });
  emitLoop(builder, loc, 0, byteValues, 1, zero, [&](Value value, ValueRange start) {
    Value next = add(start.front(), load(counters, value));
    store(start.front(), counters, value);
    return SmallVector<Value>{next};
  });
  emitLoop(builder, loc, start, filled, 1, {}, [&](Value at, ValueRange) {
    Value from = load(entries, at), counter = counterOf(from), to = load(counters, counter);
    store(add(to, one), counters, counter);
    store(from, otherEntries,
          arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), to));
    return SmallVector<Value>();
  });
}

LogicalResult weft::emitSort(KernelFunction &kernel) {
  auto op = onlyOp<SortOp>(kernel.source);
  if (!op || llvm::any_of(kernel.roots, [&](Value root) { return root.getDefiningOp() != op; }))
    return failure();
  if (tensorType(op.getValues()).getNumElements() != 0) {
    Sort sort(kernel, op);
    if (failed(sort.read(kernel.schedule.getParts().front())))
      return failure();
    sort.emit();
  }
  kernel.setWork(tensorType(op.getOperand()).getNumElements());
  return success();
}
