// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A roofline model. An elementwise op that is computed again is fused into the ops that read it, so
// that only its arithmetic counts; a contraction costs its multiplications.
#include "compiler/Autodiff/RecomputeCost.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/OpCost.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace weft;

// For one core with AVX-512: some 100 Gflop/s of float32 against 12 GB/s of memory, as
// `weft._core.measure_peak_flops(1)` and `measure_peak_bandwidth(1)` measure them.
static constexpr int64_t flopsPerByte = 8;
// The number of elements that can be added in the time of moving one byte.
static constexpr int64_t additionsPerByte = 4;

int64_t weft::bytesOf(Value value) {
  RankedTensorType type = tensorType(value);
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// Whether the only reader of `value` adds a bias to it: the contraction then stores the sum
/// instead of `value`.
static bool isBiased(Value value) {
  if (!isa_and_present<DotGeneralOp, ConvOp>(value.getDefiningOp()) || !value.hasOneUse())
    return false;
  auto sum = dyn_cast<AddOp>(*value.user_begin());
  return sum && llvm::any_of(sum->getOperands(), [](Value operand) {
           return operand.getDefiningOp<BroadcastInDimOp>() != nullptr;
         });
}

bool weft::isStored(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || workOf(op).kind == OpWork::Kind::Reading)
    return false; // Of an argument this would be a copy, which nobody has stored.
  if (isBiased(value))
    return false;
  if (placementOf(op).stored)
    return true;
  if (isa<AddOp>(op) && llvm::any_of(op->getOperands(), isBiased))
    return true;
  return llvm::any_of(value.getUsers(),
                      [](Operation *user) { return isa<DotGeneralOp, ConvOp>(user); });
}

int64_t weft::costOfSaving(Value value) {
  // A result is written for the caller anyway, so that saving it costs only reading it.
  bool isResult = llvm::any_of(
      value.getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); });
  int64_t bytes = bytesOf(value);
  return std::max<int64_t>(isResult ? bytes / 2 : isStored(value) ? bytes : 2 * bytes, 1);
}

static int64_t movedBytes(Operation *op) {
  int64_t moved = 0;
  for (Value value : op->getOperands())
    moved += bytesOf(value);
  for (Value value : op->getResults())
    moved += bytesOf(value);
  return moved;
}

static int64_t largestElements(Operation *op) {
  int64_t largest = 0;
  for (Value value : op->getOperands())
    largest = std::max(largest, tensorType(value).getNumElements());
  for (Value value : op->getResults())
    largest = std::max(largest, tensorType(value).getNumElements());
  return largest;
}

int64_t weft::costOfRecomputing(Operation *op) {
  if (!isPure(op))
    return -1;
  if (op->getNumOperands() == 0)
    return 0;
  OpWork work = workOf(op);
  switch (work.kind) {
  case OpWork::Kind::Nothing:
    return 0;
  case OpWork::Kind::Reading:
    return bytesOf(op->getResult(0));
  case OpWork::Kind::Moving:
    return movedBytes(op);
  case OpWork::Kind::Additions:
    return largestElements(op) * work.count / additionsPerByte;
  case OpWork::Kind::Products:
    // A contraction with few multiplications, such as a depthwise one, is as slow as memory.
    return std::max(2 * work.count / flopsPerByte, movedBytes(op));
  case OpWork::Kind::TooMuch:
    return -1;
  }
  llvm_unreachable("all kinds of work are handled above");
}
