// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/X86/AmxTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

void AmxTile::call(StringRef name, ValueRange operands) {
  LLVM::CallIntrinsicOp::create(builder, loc, builder.getStringAttr(name), operands);
}

Value AmxTile::number(int value) {
  return arith::ConstantOp::create(builder, loc, builder.getI8IntegerAttr(value));
}

Value AmxTile::strideValue(int64_t bytes) {
  return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(bytes));
}

Value AmxTile::addressOf(Value memory) {
  return memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memory);
}

Value AmxTile::pointer(Value address, Value bytes) {
  Value sum = arith::AddIOp::create(builder, loc, address, bytes);
  Value word = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), sum);
  auto type = LLVM::LLVMPointerType::get(builder.getContext());
  return LLVM::IntToPtrOp::create(builder, loc, type, word);
}

void AmxTile::configure(Value memory) {
  // The 64-byte tile configuration: palette 1, then bytes per row (16 bits a tile), then rows (8
  // bits a tile).
  SmallVector<int32_t> words(16, 0);
  words[0] = 1;
  std::fill_n(words.begin() + 4, 4, rowBytes << 16 | rowBytes);
  std::fill_n(words.begin() + 12, 2, rows << 24 | rows << 16 | rows << 8 | rows);
  auto type = VectorType::get({16}, builder.getI32Type());
  Value config = arith::ConstantOp::create(builder, loc, DenseIntElementsAttr::get(type, words));
  Value start = arith::ConstantIndexOp::create(builder, loc, 0);
  vector::StoreOp::create(builder, loc, config, memory, start);
  call("llvm.x86.ldtilecfg", pointer(addressOf(memory), start));
}

void AmxTile::release() { call("llvm.x86.tilerelease", {}); }

void AmxTile::zero(int target) { call("llvm.x86.tilezero", number(target)); }

void AmxTile::load(int target, Value address, Value bytes, int64_t stride) {
  call("llvm.x86.tileloadd64", {number(target), pointer(address, bytes), strideValue(stride)});
}

void AmxTile::store(int source, Value address, Value bytes, int64_t stride) {
  call("llvm.x86.tilestored64", {number(source), pointer(address, bytes), strideValue(stride)});
}

void AmxTile::multiply(int sums, int a, int b) {
  call("llvm.x86.tdpbf16ps", {number(sums), number(a), number(b)});
}
