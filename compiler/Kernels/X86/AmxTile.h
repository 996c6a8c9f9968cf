// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The instructions of AMX, x86's matrix unit: eight registers of 16 rows of 64 bytes, and
// products of bfloat16 pairs summed in float32. Registers are named by number: what lives in
// which is the emitter's decision, as a spill would cost more than the product saves.
#ifndef WEFT_COMPILER_KERNELS_X86_AMXTILE_H
#define WEFT_COMPILER_KERNELS_X86_AMXTILE_H

#include "mlir/IR/Builders.h"

namespace weft {

class AmxTile {
public:
  static constexpr int64_t rows = 16, rowBytes = 64, registerBytes = rows * rowBytes;

  AmxTile(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  /// All registers whole; `memory` is a memref of 16 i32, which is overwritten.
  void configure(mlir::Value memory);
  void release();

  /// Where `memory`, a memref, begins, for load and store.
  mlir::Value addressOf(mlir::Value memory);

  void zero(int number);
  /// Rows `stride` bytes apart, from `bytes` behind `address` on.
  void load(int number, mlir::Value address, mlir::Value bytes, int64_t stride);
  void store(int number, mlir::Value address, mlir::Value bytes, int64_t stride);
  /// sums[m][n] += the sum over k of a[m][k] * b[k][n], float32 and bfloat16; `b` has two
  /// neighbours in k side by side, for each n.
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
