// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/BlockedSummation.h"
#include "compiler/Kernels/Emission/KernelFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weft;

namespace {
class BlockedSummation {
public:
  BlockedSummation(OpBuilder &builder, Location loc, int64_t block, SumTerms terms)
      : builder(builder), loc(loc), block(block), terms(terms) {}

  SmallVector<Value> emit(Value base, int64_t extent, ArrayRef<Value> sums);

private:
  SmallVector<Value> emitApart(Value base, int64_t extent, ArrayRef<Value> sums);

  OpBuilder &builder;
  Location loc;
  int64_t block;
  SumTerms terms;
};
} // namespace

SmallVector<Value> BlockedSummation::emit(Value base, int64_t extent, ArrayRef<Value> sums) {
  if (extent <= block)
    return terms(base, extent, sums);
  int64_t size = block;
  while (size * longestChain < extent)
    size *= longestChain;
  int64_t whole = extent / size * size;
  auto at = [&](Value offset) { return arith::AddIOp::create(builder, loc, base, offset); };
  SmallVector<Value> now =
      emitLoop(builder, loc, 0, whole, size, sums, [&](Value offset, ValueRange carried) {
        return emitApart(at(offset), size, SmallVector<Value>(carried));
      });
  if (whole < extent)
    now = emitApart(at(arith::ConstantIndexOp::create(builder, loc, whole)), extent - whole, now);
  return now;
}

/// As emit, but accumulates the new terms from zero and then adds their sum to `sums`.
SmallVector<Value> BlockedSummation::emitApart(Value base, int64_t extent, ArrayRef<Value> sums) {
  SmallVector<Value> all;
  for (Value sum : sums)
    all.push_back(arith::ConstantOp::create(builder, loc,
                                            cast<TypedAttr>(builder.getZeroAttr(sum.getType()))));
  all = emit(base, extent, all);
  for (auto [sum, before] : llvm::zip_equal(all, sums))
    sum = arith::AddFOp::create(builder, loc, before, sum);
  return all;
}

SmallVector<Value> weft::emitSumsInBlocks(OpBuilder &builder, Location loc, int64_t extent,
                                          int64_t block, ArrayRef<Value> sums, SumTerms terms) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  return BlockedSummation(builder, loc, block, terms).emit(zero, extent, sums);
}
