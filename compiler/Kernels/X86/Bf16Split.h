// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A float32 as the exact sum of three bfloat16: 24 significant bits are three times eight.
#ifndef WEFT_COMPILER_KERNELS_X86_BF16SPLIT_H
#define WEFT_COMPILER_KERNELS_X86_BF16SPLIT_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace weft {

/// Smaller numbers are flushed to 0: their parts would not have full precision.
constexpr int smallestSplitExponent = -100;

/// Parts from the largest to the smallest: vectors of i32 with a bfloat16 in the upper half of each
/// lane. Exact for finite numbers of magnitude at least 2^-100, and for 0. A bfloat16 is its own
/// only part.
using Bf16Split = llvm::SmallVector<mlir::Value, 3>;
Bf16Split splitFloat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value vector);

/// Packs the bfloat16 of two vectors into each lane: `lower` in the low half, `upper` in the high.
mlir::Value pairLanes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lower,
                      mlir::Value upper);
/// Concatenates the bfloat16 of two vectors into one vector of the same type.
mlir::Value joinLanes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value first,
                      mlir::Value second);

/// Tracks the smallest magnitude (zeros excluded or not) and the largest of float32 numbers. The
/// state is vectors of i32, to be carried through loops; answers are i1.
class MagnitudeWatch {
public:
  using State = llvm::SmallVector<mlir::Value, 2>;
  enum Zeros { Apart, Count };

  MagnitudeWatch(mlir::OpBuilder &builder, mlir::Location loc, int64_t lanes, Zeros zeros);

  State begin();
  void see(llvm::MutableArrayRef<mlir::Value> state, mlir::Value vector);

  /// Whether all magnitudes are at least 2^exponent.
  mlir::Value reach(llvm::ArrayRef<mlir::Value> state, int exponent);
  /// Whether all magnitudes are below 2^exponent; false for infinities and NaN, even for 128.
  mlir::Value below(llvm::ArrayRef<mlir::Value> state, int exponent);

private:
  mlir::Value splat(uint32_t bits);
  mlir::Value allLanes(mlir::arith::CmpIPredicate predicate, mlir::Value lanes, uint32_t bound);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::VectorType type;
  uint32_t first; ///< bits of the smallest number that is counted
};

} // namespace weft

#endif
