// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A roofline with two slopes: what is computed element by element again is fused into what reads
// it, so that only its arithmetic counts; a contraction counts by its multiplications.
#include "compiler/Autodiff/RecomputeCost.h"
#include "compiler/Graph/Constraints.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace weft;

// Of one core with AVX-512: some 100 Gflop/s of float32 against 12 GB/s of memory, as
// `weft._core.measure_peak_flops(1)` and `measure_peak_bandwidth(1)` give them.
static constexpr int64_t flopsPerByte = 8;
// Elements a byte of additions and the like, and bytes an element of what is a polynomial.
static constexpr int64_t cheapPerByte = 4, bytesPerFunction = 2, bytesPerSorted = 64;

int64_t weft::bytesOf(Value value) {
  RankedTensorType type = tensorType(value);
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

static bool isView(Operation *op) {
  return isa<ReshapeOp, RelayoutOp, BroadcastInDimOp, WithSlopesOp>(op);
}

/// Whether all that reads `value` is the addition of a bias to it, which a contraction stores in
/// its place.
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
  if (!op || isa<TransposeOp, SliceOp>(op))
    return false; // of an argument it would be a copy
  if (isBiased(value))
    return false;
  if (isa<DotGeneralOp, MultiDotOp, ConvOp, GroupedDotOp, ScatterOp, SortOp, CumulativeOp, ReduceOp,
          AttentionOp, ScanOp, TorchFallbackOp>(op))
    return true;
  if (isa<AddOp>(op) && llvm::any_of(op->getOperands(), isBiased))
    return true;
  return llvm::any_of(value.getUsers(),
                      [](Operation *user) { return isa<DotGeneralOp, ConvOp>(user); });
}

int64_t weft::costOfSaving(Value value) {
  // The caller has a result anyway.
  bool isResult = llvm::any_of(
      value.getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); });
  int64_t bytes = bytesOf(value);
  return std::max<int64_t>(isResult ? bytes / 2 : isStored(value) ? bytes : 2 * bytes, 1);
}

static int64_t elementsOf(Value value) { return tensorType(value).getNumElements(); }

/// Multiplications of a contraction: each element of the result times those contracted.
static int64_t multiplications(Operation *op) {
  if (auto dot = dyn_cast<DotGeneralOp>(op)) {
    int64_t contracted = 1;
    for (int64_t dim : dot.getLhsContract())
      contracted *= tensorType(dot.getLhs()).getDimSize(dim);
    return elementsOf(dot) * contracted;
  }
  if (auto conv = dyn_cast<ConvOp>(op)) {
    RankedTensorType weight = conv.getWeight().getType();
    return elementsOf(conv) *
           (weight.getNumElements() / std::max<int64_t>(weight.getDimSize(0), 1));
  }
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    RankedTensorType key = attention.getKey().getType();
    int64_t keys = key.getDimSize(key.getRank() - 2);
    return (elementsOf(attention) + elementsOf(attention.getQuery())) * keys;
  }
  return 0;
}

static int64_t movedBytes(Operation *op) {
  int64_t moved = 0;
  for (Value value : op->getOperands())
    moved += bytesOf(value);
  for (Value value : op->getResults())
    moved += bytesOf(value);
  return moved;
}

int64_t weft::costOfRecomputing(Operation *op) {
  if (!isPure(op))
    return -1;
  // Who asks for Philox wants the bits drawn again, not kept.
  if (isView(op) || op->getNumOperands() == 0 || isa<PhiloxOp>(op))
    return 0;
  // A contraction of few multiplications, as one of each channel, is as slow as memory.
  if (isa<DotGeneralOp, ConvOp, AttentionOp>(op))
    return std::max(2 * multiplications(op) / flopsPerByte, movedBytes(op));
  if (isa<GroupedDotOp, MultiDotOp, ScanOp, WinogradConvOp>(op))
    return -1;
  int64_t largest = 0;
  for (Value value : op->getOperands())
    largest = std::max(largest, elementsOf(value));
  for (Value value : op->getResults())
    largest = std::max(largest, elementsOf(value));
  if (isa<SortOp>(op))
    return largest * bytesPerSorted;
  if (isa<AddOp, SubOp, MulOp, NegOp, AbsOp, SignOp, NotOp, AndOp, OrOp, XorOp, MaxOp, MinOp, CmpOp,
          SelectOp, ConvertOp, CeilOp, FloorOp, TruncOp, RoundEvenOp>(op))
    return largest / cheapPerByte;
  if (op->hasTrait<OpTrait::Elementwise>())
    return largest * bytesPerFunction;
  // An affine map of each channel, and a function times a polynomial, which the backward shares.
  if (isa<BatchNormOp>(op))
    return largest * 4 / cheapPerByte;
  if (isa<GeluOp, SiluOp>(op))
    return largest * (bytesPerFunction + 4 / cheapPerByte);
  if (isa<CompositeOpInterface>(op))
    return largest * 4 * bytesPerFunction;
  // As a rule a way to read the operand, fused into what follows.
  if (isa<SliceOp, TransposeOp>(op))
    return bytesOf(op->getResult(0));
  // The others move their elements, or run over them in a loop of their own.
  return movedBytes(op);
}
