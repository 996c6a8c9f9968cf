// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Ordering/LanePacking.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

static Value toIndex(OpBuilder &builder, Location loc, Value integer) {
  return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), integer);
}

Value LanePacking::bitsOf(Value mask) {
  int64_t lanes = cast<VectorType>(mask.getType()).getDimSize(0);
  auto type = VectorType::get({1}, builder.getIntegerType(lanes));
  Value bits = vector::BitCastOp::create(builder, kernel.loc, type, mask);
  return vector::ExtractOp::create(builder, kernel.loc, bits, 0);
}

Value LanePacking::numberOf(Value mask) {
  Value number = LLVM::CtPopOp::create(builder, kernel.loc, bitsOf(mask));
  return toIndex(builder, kernel.loc, number);
}

Value LanePacking::first(Value number, int64_t lanes) {
  auto type = VectorType::get({lanes}, builder.getI32Type());
  auto numbers = llvm::to_vector(llvm::seq<int32_t>(0, lanes));
  Value each = arith::ConstantOp::create(builder, kernel.loc,
                                         DenseElementsAttr::get(type, ArrayRef(numbers)));
  Value narrow = arith::IndexCastOp::create(builder, kernel.loc, builder.getI32Type(), number);
  Value all = vector::BroadcastOp::create(builder, kernel.loc, type, narrow);
  return arith::CmpIOp::create(builder, kernel.loc, arith::CmpIPredicate::ult, each, all);
}

Value LanePacking::packed(Value elements, Value mask) {
  // AVX-512 has an instruction for it, without which LLVM stores lane by lane.
  if (kernel.target.vectorBytes == 32)
    return permuted(elements, mask);
  auto name = builder.getStringAttr("llvm.experimental.vector.compress");
  return LLVM::CallIntrinsicOp::create(builder, kernel.loc, elements.getType(), name,
                                       ValueRange{elements, mask, elements})
      .getResult(0);
}

/// By AVX2's permutation of eight 32-bit parts, which the bits of the mask choose.
Value LanePacking::permuted(Value elements, Value mask) {
  Location loc = kernel.loc;
  auto type = cast<VectorType>(elements.getType());
  auto parts = VectorType::get({8}, builder.getI32Type());
  Value eight = arith::ConstantIndexOp::create(builder, loc, 8);
  Value number = toIndex(builder, loc, bitsOf(mask));
  Value start = arith::MulIOp::create(builder, loc, number, eight);
  Value table = permutations(type.getDimSize(0));
  Value order = vector::LoadOp::create(builder, loc, parts, table, start);
  Value source = vector::BitCastOp::create(builder, loc, parts, elements);
  auto name = builder.getStringAttr("llvm.x86.avx2.permd");
  Value moved = LLVM::CallIntrinsicOp::create(builder, loc, parts, name, ValueRange{source, order})
                    .getResult(0);
  return vector::BitCastOp::create(builder, loc, type, moved);
}

/// For each mask of `lanes` lanes, by its bits: which of the 32-bit parts stand first.
Value LanePacking::permutations(int64_t lanes) {
  int64_t partsOfLane = 8 / lanes;
  SmallVector<int32_t> all;
  for (int64_t mask = 0; mask < (int64_t(1) << lanes); ++mask) {
    size_t end = all.size() + 8;
    for (int64_t lane = 0; lane < lanes; ++lane)
      for (int64_t part = 0; part < partsOfLane && (mask >> lane & 1); ++part)
        all.push_back(lane * partsOfLane + part);
    all.resize(end, 0);
  }
  auto type = RankedTensorType::get({int64_t(all.size())}, builder.getI32Type());
  return kernel.table(DenseElementsAttr::get(type, ArrayRef(all))).flat;
}
