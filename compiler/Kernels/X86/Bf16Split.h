// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A float32 as the exact sum of three bfloat16: 24 significant bits are three times eight.
#ifndef WEFT_COMPILER_KERNELS_X86_BF16SPLIT_H
#define WEFT_COMPILER_KERNELS_X86_BF16SPLIT_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace weft {

/// Of smaller numbers but 0 the parts would not be numbers of full precision: they are taken for 0.
constexpr int smallestSplitExponent = -100;

/// From the largest to the smallest; vectors of i32 with a bfloat16 in the upper half of each
/// lane. Exact for finite numbers of at least 2^-100, and for 0. A bfloat16 is its only part.
using Bf16Split = llvm::SmallVector<mlir::Value, 3>;
Bf16Split splitFloat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value vector);

/// The bfloat16 of two vectors side by side in each lane.
mlir::Value pairLanes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lower,
                      mlir::Value upper);
/// The bfloat16 of one vector behind those of another, as as many i32.
mlir::Value joinLanes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value first,
                      mlir::Value second);

/// Watches how small, zeros apart or not, and how large float32 numbers become in magnitude. The
/// state is vectors of i32, to be carried through loops; answers are i1.
class MagnitudeWatch {
public:
  using State = llvm::SmallVector<mlir::Value, 2>;
  enum Zeros { Apart, Count };

  MagnitudeWatch(mlir::OpBuilder &builder, mlir::Location loc, int64_t lanes, Zeros zeros);

  State begin();
  void see(llvm::MutableArrayRef<mlir::Value> state, mlir::Value vector);

  /// Whether all are at least 2^exponent.
  mlir::Value reach(llvm::ArrayRef<mlir::Value> state, int exponent);
  /// Of infinities and NaN not even for 128.
  mlir::Value below(llvm::ArrayRef<mlir::Value> state, int exponent);

private:
  mlir::Value splat(uint32_t bits);
  mlir::Value allLanes(mlir::arith::CmpIPredicate predicate, mlir::Value lanes, uint32_t bound);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::VectorType type;
  uint32_t first; ///< the bits of the smallest number that counts
};

} // namespace weft

#endif
