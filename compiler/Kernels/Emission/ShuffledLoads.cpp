// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/ShuffledLoads.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

/// Offset of lane i's element from that of lane 0.
static std::optional<SmallVector<int64_t>> laneOffsets(const IndexSpace &space, const Lanes &lanes,
                                                       int64_t count, AffineExpr position) {
  AffineExpr lane = getAffineDimExpr(lanes.dim, position.getContext());
  AffineExpr start = lanes.wholeVectors ? lane * lanes.width : lane;
  AffineExpr first = position.replace(lane, start);
  SmallVector<int64_t> offsets;
  for (int64_t i = 0; i < count; ++i) {
    AffineExpr there = position.replace(lane, start + i);
    auto offset = dyn_cast<AffineConstantExpr>(space.simplify(there - first));
    if (!offset)
      return std::nullopt;
    offsets.push_back(offset.getValue());
  }
  return offsets;
}

std::optional<ShuffledLoads> ShuffledLoads::of(const IndexSpace &space, const Lanes &lanes,
                                               int64_t count, AffineExpr position) {
  constexpr int64_t most = 4;
  auto offsets = laneOffsets(space, lanes, count, position);
  if (!offsets)
    return std::nullopt;
  SmallVector<int64_t> sorted(*offsets);
  llvm::sort(sorted);
  ShuffledLoads windows;
  int64_t last = sorted.back();
  windows.size = llvm::bit_floor<uint64_t>(std::min(lanes.width, last - sorted.front() + 1));
  for (int64_t offset : sorted)
    if (windows.starts.empty() || offset >= windows.starts.back() + windows.size)
      windows.starts.push_back(std::min(offset, last - windows.size + 1));
  if (int64_t(windows.starts.size()) > most)
    return std::nullopt;
  for (int64_t offset : *offsets) {
    int64_t window = llvm::upper_bound(windows.starts, offset) - windows.starts.begin() - 1;
    windows.places.push_back(window * windows.size + offset - windows.starts[window]);
  }
  windows.places.resize(lanes.width, windows.places.front());
  return windows;
}

Value ShuffledLoads::load(OpBuilder &builder, Location loc, Value memory, Value address) const {
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  auto at = [&](int64_t start) -> Value {
    Value offset = arith::ConstantIndexOp::create(builder, loc, start);
    return arith::AddIOp::create(builder, loc, address, offset);
  };
  int64_t width = places.size();
  if (size == 1 && starts.size() == 1) {
    Value scalar = memref::LoadOp::create(builder, loc, memory, at(starts.front()));
    return vector::BroadcastOp::create(builder, loc, VectorType::get({width}, element), scalar);
  }
  auto type = VectorType::get({size}, element);
  SmallVector<Value> pieces;
  for (int64_t start : starts)
    pieces.push_back(vector::LoadOp::create(builder, loc, type, memory, at(start)));
  // Shuffle two pieces at a time; lanes whose element is in neither get an arbitrary one.
  SmallVector<Value> pairs;
  for (size_t i = 0; i < pieces.size(); i += 2) {
    SmallVector<int64_t> order;
    for (int64_t place : places) {
      int64_t inPair = place - int64_t(i) * size;
      order.push_back(inPair >= 0 && inPair < 2 * size ? inPair : 0);
    }
    Value second = pieces[std::min(i + 1, pieces.size() - 1)];
    pairs.push_back(vector::ShuffleOp::create(builder, loc, pieces[i], second, order));
  }
  if (pairs.size() == 1)
    return pairs.front();
  SmallVector<int64_t> order;
  for (auto [lane, place] : llvm::enumerate(places))
    order.push_back(place < 2 * size ? int64_t(lane) : width + int64_t(lane));
  return vector::ShuffleOp::create(builder, loc, pairs[0], pairs[1], order);
}
