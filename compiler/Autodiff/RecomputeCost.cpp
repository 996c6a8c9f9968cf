// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A roofline model. An elementwise op that is computed again is fused into the ops that read it, so
// that only its arithmetic counts; a contraction costs its multiplications.
#include "compiler/Autodiff/RecomputeCost.h"
#include "compiler/Graph/Constraints.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace weft;

// For one core with AVX-512: some 100 Gflop/s of float32 against 12 GB/s of memory, as
// `weft._core.measure_peak_flops(1)` and `measure_peak_bandwidth(1)` measure them.
static constexpr int64_t flopsPerByte = 8;
// The number of elements that can be added in the time of moving one byte, and the number of bytes
// that can be moved while one element of a function such as exp is computed or sorted.
static constexpr int64_t cheapPerByte = 4, bytesPerFunction = 2, bytesPerSorted = 64;

int64_t weft::bytesOf(Value value) {
  RankedTensorType type = tensorType(value);
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

static bool isView(Operation *op) {
  return isa<ReshapeOp, RelayoutOp, BroadcastInDimOp, WithSlopesOp>(op);
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
  if (!op || isa<TransposeOp, SliceOp>(op))
    return false; // Of an argument this would be a copy, which nobody has stored.
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
  // A result is written for the caller anyway, so that saving it costs only reading it.
  bool isResult = llvm::any_of(
      value.getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); });
  int64_t bytes = bytesOf(value);
  return std::max<int64_t>(isResult ? bytes / 2 : isStored(value) ? bytes : 2 * bytes, 1);
}

static int64_t elementsOf(Value value) { return tensorType(value).getNumElements(); }

/// The multiplications of a contraction: the elements of the result times the contracted ones.
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
  // Programs that draw random numbers by Philox want the bits to be drawn again, not to be saved.
  if (isView(op) || op->getNumOperands() == 0 || isa<PhiloxOp>(op))
    return 0;
  // A contraction with few multiplications, such as a depthwise convolution, is as slow as memory.
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
  // A batch norm is an affine map of each channel. GELU and SiLU are a function times a polynomial,
  // and the backward computes that function in any case.
  if (isa<BatchNormOp>(op))
    return largest * 4 / cheapPerByte;
  if (isa<GeluOp, SiluOp>(op))
    return largest * (bytesPerFunction + 4 / cheapPerByte);
  if (isa<CompositeOpInterface>(op))
    return largest * 4 * bytesPerFunction;
  // These ops are usually fused into their readers as another way to read the operand.
  if (isa<SliceOp, TransposeOp>(op))
    return bytesOf(op->getResult(0));
  // The other ops move their elements, or run over them in a loop of their own.
  return movedBytes(op);
}
