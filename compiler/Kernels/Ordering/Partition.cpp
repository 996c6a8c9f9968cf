// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A row is read twice: how many elements come first says where the others begin; then the positions
// of each vector are packed by the lanes' mask, and by its complement, and stored after those
// before them. Only packed lanes are stored: after them may be the other part, or another row.
#include "compiler/Kernels/Ordering/Partition.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/StoredBools.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"
#include "compiler/Kernels/Nest/Reductions.h"
#include "compiler/Kernels/Ordering/LanePacking.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

namespace {

class Partition : private IndexArithmetic {
public:
  Partition(KernelFunction &kernel, SortOp op, const SortSchedule &schedule)
      : IndexArithmetic(kernel.builder, op.getLoc()), kernel(kernel), op(op), schedule(schedule),
        space(op.getContext()), point(kernel.elementEmitter(space)), lanes(kernel) {}

  void emit();

private:
  void plan();
  SmallVector<Value, 4> firstLanes();
  Value countFirst();
  void storePositions(Value buffer, Value first, Value others);
  void storeLanes(Value positions, Value mask, Value buffer, Value &place);
  void fill(Value buffer, Value from, Value to, bool number);

  KernelFunction &kernel;
  SortOp op;
  SortSchedule schedule;
  IndexSpace space;
  ElementEmitter point;
  LanePacking lanes;

  int64_t rows = 0, size = 0;
  unsigned row = 0, along = 0; ///< loop variables
  Index index;
};

} // namespace

void Partition::plan() {
  ArrayRef<int64_t> shape = tensorType(op.getOperand()).getShape();
  int64_t dim = op.getDim();
  size = shape[dim];
  rows = ShapedType::getNumElements(shape.take_front(dim));
  row = space.size();
  index = space.delinearize(space.addDim(rows), shape.take_front(dim));
  along = space.size();
  index.push_back(space.addDim(size));
  index.append(shape.size() - index.size(), space.constant(0));
}

void Partition::emit() {
  plan();
  auto [low, high] = kernel.share(rows);
  emitLoop(builder, loc, low, high, 1, {}, [&](Value number, ValueRange) {
    point.setDim(row, number);
    point.forget();
    Value begin = times(number, size);
    Value others = add(begin, countFirst()), end = add(begin, size);
    for (auto [root, buffer] : llvm::zip_equal(kernel.roots, kernel.rootBuffers)) {
      if (root == op.getIndices()) {
        storePositions(buffer.flat, begin, others);
        continue;
      }
      fill(buffer.flat, begin, others, op.getDescending());
      fill(buffer.flat, others, end, !op.getDescending());
    }
    return SmallVector<Value>();
  });
}

/// For each lane group of the point, the mask of lanes whose elements go to the front.
SmallVector<Value, 4> Partition::firstLanes() {
  auto masks = point.asVectors(point.emitAt(op.getOperand(), index));
  auto comesFirst = op.getDescending() ? arith::CmpIPredicate::ne : arith::CmpIPredicate::eq;
  for (auto [group, mask] : llvm::enumerate(masks)) {
    Value zeros = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(mask.getType()));
    mask = is(comesFirst, mask, zeros);
    if (Value valid = point.validMask(group))
      mask = arith::AndIOp::create(builder, loc, mask, valid);
  }
  return masks;
}

Value Partition::countFirst() {
  VectorBlock bytes{8 * schedule.width, schedule.groups};
  Value zero = constant(0);
  auto count = emitLaneLoop(point, along, zero, size, bytes, zero, [&](Value, ValueRange now) {
    Value sum = now.front();
    for (Value mask : firstLanes())
      sum = add(sum, lanes.numberOf(mask));
    return SmallVector<Value>{sum};
  });
  point.setLanes(Lanes());
  return count.front();
}

void Partition::storePositions(Value buffer, Value first, Value others) {
  int64_t width = schedule.width;
  auto type = VectorType::get({width}, builder.getI64Type());
  auto numbers = llvm::to_vector(llvm::seq<int64_t>(0, width));
  Value each =
      arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, ArrayRef(numbers)));
  Value all = arith::ConstantIntOp::create(builder, loc, builder.getI1Type(), 1);
  all =
      vector::BroadcastOp::create(builder, loc, VectorType::get({width}, builder.getI1Type()), all);
  Value starts[] = {first, others};
  emitLaneLoop(point, along, constant(0), size, {width, schedule.groups}, starts,
               [&](Value base, ValueRange now) {
                 SmallVector<Value> places(now);
                 for (auto [group, mask] : llvm::enumerate(firstLanes())) {
                   Value from = add(base, static_cast<int64_t>(group) * width);
                   from = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), from);
                   Value positions = vector::BroadcastOp::create(builder, loc, type, from);
                   positions = arith::AddIOp::create(builder, loc, positions, each);
                   Value rest = arith::XOrIOp::create(builder, loc, mask, all);
                   if (Value valid = point.validMask(group))
                     rest = arith::AndIOp::create(builder, loc, rest, valid);
                   storeLanes(positions, mask, buffer, places[0]);
                   storeLanes(positions, rest, buffer, places[1]);
                 }
                 return places;
               });
  point.setLanes(Lanes());
}

/// Stores the lanes of `mask` at `place`, which moves after them.
void Partition::storeLanes(Value positions, Value mask, Value buffer, Value &place) {
  int64_t width = cast<VectorType>(positions.getType()).getDimSize(0);
  Value number = lanes.numberOf(mask);
  vector::MaskedStoreOp::create(builder, loc, buffer, place, lanes.first(number, width),
                                lanes.packed(positions, mask));
  place = add(place, number);
}

/// [from, to) of `buffer`, i8.
void Partition::fill(Value buffer, Value from, Value to, bool number) {
  int64_t width = 2 * schedule.width;
  auto type = VectorType::get({width}, builder.getI8Type());
  Value value = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, static_cast<int8_t>(number)));
  emitLoop(builder, loc, from, to, width, {}, [&](Value at, ValueRange) {
    Value left = least(subtract(to, at), constant(width));
    vector::MaskedStoreOp::create(builder, loc, buffer, at, lanes.first(left, width), value);
    return SmallVector<Value>();
  });
}

bool weft::isPartition(SortOp op) {
  ArrayRef<int64_t> shape = tensorType(op.getOperand()).getShape();
  int64_t dim = op.getDim(), size = shape[dim];
  return op->hasAttr(attr::storedBools) && static_cast<int64_t>(op.getCount()) == size &&
         ShapedType::getNumElements(shape.drop_front(dim)) == size;
}

void weft::emitPartition(KernelFunction &kernel, SortOp op, const SortSchedule &schedule) {
  Partition(kernel, op, schedule).emit();
}
