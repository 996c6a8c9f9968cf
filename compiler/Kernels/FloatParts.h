// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A float32 as the exact sum of three bfloat16: 24 significant bits are three times eight.
#ifndef WEFT_COMPILER_KERNELS_FLOATPARTS_H
#define WEFT_COMPILER_KERNELS_FLOATPARTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace weft {

/// From the largest to the smallest; vectors of i32 with a bfloat16 in the upper half of each
/// lane. Exact for finite numbers of at least 2^-100, and for 0. A bfloat16 is its only part.
using FloatParts = llvm::SmallVector<mlir::Value, 3>;
FloatParts splitFloat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value vector);

/// The bfloat16 of two vectors side by side in each lane.
mlir::Value pairLanes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lower,
                      mlir::Value upper);
/// The bfloat16 of one vector behind those of another, as as many i32.
mlir::Value joinLanes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value first,
                      mlir::Value second);

/// Watches whether float32 numbers, but for zeros, reach 2^low in magnitude, and whether they
/// are finite if that is wanted. The state is a vector of i32 for each, to be carried through
/// loops.
class MagnitudeWatch {
public:
  MagnitudeWatch(mlir::OpBuilder &builder, mlir::Location loc, int64_t lanes, int low,
                 bool wantsFinite);

  llvm::SmallVector<mlir::Value, 2> begin();
  void see(llvm::MutableArrayRef<mlir::Value> state, mlir::Value vector);
  /// An i1.
  mlir::Value holds(llvm::ArrayRef<mlir::Value> state);

private:
  mlir::Value splat(uint32_t bits);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::VectorType type;
  uint32_t least; ///< as bits, which order magnitudes as the numbers do
  bool wantsFinite;
};

} // namespace weft

#endif
