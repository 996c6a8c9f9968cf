// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// AMX instructions: eight tile registers of 16 rows of 64 bytes, and products of bfloat16 pairs
// accumulated in float32. Tiles are addressed by number: the emitter allocates them, as a spill
// would cost more than the product saves.
#ifndef WEFT_COMPILER_KERNELS_X86_AMXTILE_H
#define WEFT_COMPILER_KERNELS_X86_AMXTILE_H

#include "mlir/IR/Builders.h"

namespace weft {

class AmxTile {
public:
  static constexpr int64_t rows = 16, rowBytes = 64, registerBytes = rows * rowBytes;

  AmxTile(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  /// Configures all tiles at full size; `memory`, a memref of 16 i32, is overwritten.
  void configure(mlir::Value memory);
  void release();

  /// Base address of the memref `memory`, for load and store.
  mlir::Value addressOf(mlir::Value memory);

  void zero(int number);
  /// Loads rows with a stride of `stride` bytes, starting `bytes` after `address`.
  void load(int number, mlir::Value address, mlir::Value bytes, int64_t stride);
  void store(int number, mlir::Value address, mlir::Value bytes, int64_t stride);
  /// sums[m][n] += the sum over k of a[m][k] * b[k][n]: bfloat16 operands, float32 sums; `b` is in
  /// VNNI layout, pairs of k interleaved for each n.
  void multiply(int sums, int a, int b);

private:
  mlir::Value number(int value);
  mlir::Value pointer(mlir::Value address, mlir::Value bytes);
  mlir::Value strideValue(int64_t bytes);
  void call(llvm::StringRef name, mlir::ValueRange operands);

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace weft

#endif
