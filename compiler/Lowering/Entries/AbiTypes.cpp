// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Lowering/Entries/AbiTypes.h"
#include "compiler/Graph/Graph.h"
#include "runtime/Abi.h"
#include <cstddef>

using namespace mlir;
using namespace weft;

// The LLVM struct types below mirror Abi.h; these assertions fail when it changes.
static_assert(sizeof(WeftTensor) == 40 && offsetof(WeftTensor, rank) == 24);
static_assert(sizeof(WeftContext) == 64 && offsetof(WeftContext, tensors) == 8 &&
              offsetof(WeftContext, status) == 48 && offsetof(WeftContext, stage) == 52);
static_assert(sizeof(WeftEntry) == 40 && offsetof(WeftEntry, arena_bytes) == 16);
static_assert(sizeof(WeftArtifact) == 40 && offsetof(WeftArtifact, entries) == 16);

static Type i32(MLIRContext *context) { return IntegerType::get(context, 32); }
static Type i64(MLIRContext *context) { return IntegerType::get(context, 64); }
static Type pointer(MLIRContext *context) { return LLVM::LLVMPointerType::get(context); }

LLVM::LLVMStructType abi::tensorType(MLIRContext *c) {
  return LLVM::LLVMStructType::getLiteral(
      c, {pointer(c), pointer(c), pointer(c), i32(c), i32(c), i32(c), i32(c)});
}

LLVM::LLVMStructType abi::contextType(MLIRContext *c) {
  return LLVM::LLVMStructType::getLiteral(c, {i32(c), i32(c), pointer(c), pointer(c), pointer(c),
                                              pointer(c), pointer(c), i32(c), i32(c), pointer(c)});
}

LLVM::LLVMStructType abi::entryType(MLIRContext *c) {
  return LLVM::LLVMStructType::getLiteral(
      c, {pointer(c), pointer(c), i64(c), i32(c), i32(c), i32(c), i32(c)});
}

LLVM::LLVMStructType abi::artifactType(MLIRContext *c) {
  return LLVM::LLVMStructType::getLiteral(
      c, {i32(c), i32(c), i32(c), i32(c), pointer(c), pointer(c), i64(c)});
}

LLVM::LLVMFunctionType abi::entryFunctionType(MLIRContext *c) {
  return LLVM::LLVMFunctionType::get(i32(c), {pointer(c), i32(c), i32(c)});
}

LLVM::LLVMFunctionType abi::barrierFunctionType(MLIRContext *c) {
  return LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(c), {pointer(c), i32(c)});
}

LLVM::LLVMFunctionType abi::fallbackFunctionType(MLIRContext *c) {
  return LLVM::LLVMFunctionType::get(i32(c),
                                     {pointer(c), i32(c), pointer(c), i32(c), pointer(c), i32(c)});
}

LLVM::LLVMFunctionType abi::markFunctionType(MLIRContext *c) {
  return LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(c), {pointer(c), i32(c)});
}

static std::pair<int32_t, StringRef> dtypeOf(Type type) {
  if (type.isF64())
    return {WEFT_F64, "f64"};
  if (type.isF32())
    return {WEFT_F32, "f32"};
  if (type.isBF16())
    return {WEFT_BF16, "bf16"};
  if (type.isF16())
    return {WEFT_F16, "f16"};
  if (type.isUnsignedInteger(8))
    return {WEFT_U8, "u8"};
  switch (type.getIntOrFloatBitWidth()) {
  case 64:
    return {WEFT_I64, "i64"};
  case 32:
    return {WEFT_I32, "i32"};
  case 16:
    return {WEFT_I16, "i16"};
  case 8:
    return {WEFT_I8, "i8"};
  default:
    assert(type.isInteger(1) && "an element type that the dialect does not have");
    return {WEFT_BOOL, "bool"};
  }
}

abi::TensorInfo abi::describe(RankedTensorType type) {
  TensorInfo info;
  std::tie(info.dtype, info.dtypeName) = dtypeOf(type.getElementType());
  LayoutAttr layout = layoutOf(type);
  bool tiled = isTiled(layout);
  info.shape = llvm::to_vector((tiled ? physicalType(type) : type).getShape());
  info.strides.resize(info.shape.size());
  SmallVector<int64_t> order = layout && !tiled
                                   ? llvm::to_vector(layout.getOrder())
                                   : llvm::to_vector(llvm::seq<int64_t>(0, info.shape.size()));
  int64_t stride = 1;
  for (int64_t dim : llvm::reverse(order)) {
    info.strides[dim] = stride;
    stride *= std::max<int64_t>(info.shape[dim], 1);
  }
  return info;
}
