// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads and stores of ElementEmitter: contiguous lanes become vectors, a uniform access a scalar,
// other lanes are accessed one by one; guards become masks.
#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Kernels/Emission/ShuffledLoads.h"
#include "compiler/Kernels/Emission/WideningLoad.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

Emitted ElementEmitter::conditionOf(const Guard &guard) {
  auto compare = [&](arith::CmpIPredicate predicate, const Emitted &value, int64_t bound) {
    Emitted result{{}, value.uniform};
    Value limit = arith::ConstantIndexOp::create(builder, loc, bound);
    for (Value part : value.parts) {
      Value rhs = limit;
      if (!value.uniform)
        rhs = vector::BroadcastOp::create(builder, loc, part.getType(), limit);
      result.parts.push_back(arith::CmpIOp::create(builder, loc, predicate, part, rhs));
    }
    return result;
  };
  auto [low, high] = space.rangeOf(guard.expr);
  Emitted position = emitIndex(guard.expr);
  std::optional<Emitted> condition;
  if (low < guard.low)
    condition = compare(arith::CmpIPredicate::sge, position, guard.low);
  if (high >= guard.high) {
    Emitted below = compare(arith::CmpIPredicate::slt, position, guard.high);
    if (!condition)
      return below;
    for (auto [part, other] : llvm::zip_equal(condition->parts, below.parts))
      part = arith::AndIOp::create(builder, loc, part, other);
  }
  if (condition)
    return *condition;
  return {{arith::ConstantIntOp::create(builder, loc, 1, 1)}, true};
}

Value ElementEmitter::scalarGuard() {
  Value all;
  for (const Guard &guard : guards) {
    if (dependsOnLanes(guard.expr))
      continue;
    Value condition = conditionOf(guard).parts.front();
    all = all ? arith::AndIOp::create(builder, loc, all, condition).getResult() : condition;
  }
  return all;
}

Value ElementEmitter::validMask(int64_t group) {
  return maskOfFirst(builder, loc, lanes.valid - group * lanes.width, lanes.width);
}

Value ElementEmitter::laneMask(int64_t group) {
  Value mask = validMask(group);
  auto conjoin = [&](Value condition) {
    mask = mask ? arith::AndIOp::create(builder, loc, mask, condition).getResult() : condition;
  };
  for (const Guard &guard : guards)
    if (dependsOnLanes(guard.expr))
      conjoin(conditionOf(guard).parts[group]);
  if (Value scalar = scalarGuard()) {
    auto type = VectorType::get({lanes.width}, builder.getI1Type());
    conjoin(vector::BroadcastOp::create(builder, loc, type, scalar));
  }
  return mask;
}

SmallVector<ElementEmitter::Guard> ElementEmitter::boundsOf(ArrayRef<AffineExpr> index,
                                                            ArrayRef<int64_t> shape) {
  SmallVector<Guard> bounds;
  for (auto [expr, size] : llvm::zip_equal(index, shape)) {
    auto [low, high] = space.rangeOf(expr);
    bool guardedAlready = llvm::any_of(guards, [&](const Guard &guard) {
      return guard.expr == expr && guard.low >= 0 && guard.high <= size;
    });
    if ((low < 0 || high >= size) && !guardedAlready)
      bounds.push_back({expr, 0, size});
  }
  return bounds;
}

/// The stride of an access between lanes, or nothing if it is not constant.
static std::optional<int64_t> laneStride(const IndexSpace &space, const Lanes &lanes,
                                         AffineExpr position) {
  if (lanes.isScalar())
    return 0;
  return space.coefficientOf(position, lanes.dim);
}

Emitted ElementEmitter::load(const Buffer &buffer, ArrayRef<AffineExpr> index) {
  SmallVector<Guard> bounds = boundsOf(index, buffer.shape);
  size_t outerGuards = guards.size();
  guards.append(bounds.begin(), bounds.end());
  AffineExpr position = space.linearize(index, buffer.shape);
  std::optional<int64_t> stride = laneStride(space, lanes, position);
  Type element = cast<MemRefType>(buffer.flat.getType()).getElementType();
  Emitted result;
  if (stride == 0) {
    Value address = indexValue(position);
    if (Value inside = scalarGuard()) {
      Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
      address = arith::SelectOp::create(builder, loc, inside, address, zero);
    }
    result = {{memref::LoadOp::create(builder, loc, buffer.flat, address)}, true};
  } else if (stride == 1) {
    result.uniform = false;
    auto type = VectorType::get({lanes.width}, element);
    for (int64_t group = 0; group < lanes.groups; ++group) {
      Value address = indexValue(position + group * lanes.width);
      if (Value mask = laneMask(group)) {
        Value zeros = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
        result.parts.push_back(
            vector::MaskedLoadOp::create(builder, loc, type, buffer.flat, address, mask, zeros));
      } else {
        result.parts.push_back(vector::LoadOp::create(builder, loc, type, buffer.flat, address));
      }
    }
  } else if (std::optional<Emitted> shuffled = loadWindows(buffer, position)) {
    result = *shuffled;
  } else {
    result = emitPerLane([&] { return load(buffer, index).parts.front(); });
  }
  guards.truncate(outerGuards);
  return result;
}

std::optional<Emitted> ElementEmitter::loadWindows(const Buffer &buffer, AffineExpr position) {
  if (!guards.empty())
    return std::nullopt;
  AffineExpr lane = getAffineDimExpr(lanes.dim, builder.getContext());
  Emitted result{{}, false};
  std::optional<ShuffledLoads> windows;
  for (int64_t group = 0; group < lanes.groups; ++group) {
    int64_t count = std::min(lanes.valid - group * lanes.width, lanes.width);
    if (group == 0 || count < lanes.width)
      windows = ShuffledLoads::of(space, lanes, count, position);
    if (!windows)
      return std::nullopt;
    Value address = indexValue(position.replace(lane, lane + group * lanes.width));
    result.parts.push_back(windows->load(builder, loc, buffer.flat, address));
  }
  return result;
}

void ElementEmitter::store(const Buffer &buffer, ArrayRef<AffineExpr> index, const Emitted &value,
                           ArrayRef<Bound> within) {
  size_t outerGuards = guards.size();
  llvm::append_range(guards, boundsOf(index, buffer.shape));
  for (const Bound &bound : within)
    llvm::append_range(guards, boundsOf(bound.expr, bound.size));
  AffineExpr position = space.linearize(index, buffer.shape);
  std::optional<int64_t> stride = laneStride(space, lanes, position);
  auto storeScalar = [&](Value scalar, Value address, Value inside) {
    if (!inside) {
      memref::StoreOp::create(builder, loc, scalar, buffer.flat, address);
      return;
    }
    emitIf(builder, loc, inside,
           [&] { memref::StoreOp::create(builder, loc, scalar, buffer.flat, address); });
  };
  if (stride == 0) {
    Value scalar = value.parts.front();
    if (!value.uniform)
      scalar = vector::ExtractOp::create(builder, loc, scalar, int64_t(0));
    storeScalar(scalar, indexValue(position), scalarGuard());
  } else if (stride == 1) {
    SmallVector<Value, 4> vectors = asVectors(value);
    for (int64_t group = 0; group < lanes.groups; ++group) {
      Value address = indexValue(position + group * lanes.width);
      if (Value mask = laneMask(group))
        vector::MaskedStoreOp::create(builder, loc, buffer.flat, address, mask, vectors[group]);
      else
        vector::StoreOp::create(builder, loc, vectors[group], buffer.flat, address);
    }
  } else {
    SmallVector<Value, 4> vectors = asVectors(value);
    Lanes spread = lanes;
    Value first = dimValues[spread.dim];
    lanes = Lanes();
    for (int64_t offset = 0; offset < spread.valid; ++offset) {
      Value step = arith::ConstantIndexOp::create(builder, loc, offset);
      dimValues[spread.dim] = arith::AddIOp::create(builder, loc, first, step);
      Value scalar = vector::ExtractOp::create(builder, loc, vectors[offset / spread.width],
                                               offset % spread.width);
      storeScalar(scalar, indexValue(position), scalarGuard());
    }
    lanes = spread;
    dimValues[spread.dim] = first;
  }
  guards.truncate(outerGuards);
}

void ElementEmitter::storeWithin(AffineExpr expr, int64_t size, const Buffer &buffer,
                                 ArrayRef<AffineExpr> index, llvm::function_ref<Emitted()> value) {
  underGuards({{expr, 0, size}}, [&] { store(buffer, index, value()); });
}
