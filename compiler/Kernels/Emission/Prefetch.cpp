// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/Prefetch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

void weft::emitPrefetch(OpBuilder &builder, Location loc, Value memory, Value index,
                        CacheLevel level, PrefetchIntent intent) {
  memref::PrefetchOp::create(builder, loc, memory, index,
                             /*isWrite=*/intent == PrefetchIntent::Write,
                             /*localityHint=*/level == CacheLevel::First ? 3 : 2,
                             /*isDataCache=*/true);
}

void weft::emitRunPrefetch(OpBuilder &builder, Location loc, Value memory, Value first,
                           int64_t count, CacheLevel level, PrefetchIntent intent) {
  int64_t ofLine = lineBytes * 8 / getElementTypeOrSelf(memory.getType()).getIntOrFloatBitWidth();
  for (int64_t offset = 0; offset < count; offset += ofLine) {
    Value line = first;
    if (offset > 0)
      line = arith::AddIOp::create(builder, loc, first,
                                   arith::ConstantIndexOp::create(builder, loc, offset));
    emitPrefetch(builder, loc, memory, line, level, intent);
  }
}

void weft::emitSharedPrefetch(OpBuilder &builder, Location loc, const FetchedRows &fetched,
                              Value tile, int64_t tiles, CacheLevel level) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  int64_t share = llvm::divideCeil(fetched.rows, tiles);
  Value before = arith::MulIOp::create(builder, loc, tile, constant(share));
  Value first = arith::MinUIOp::create(builder, loc, before, constant(fetched.rows - share));
  Value skipped = arith::MulIOp::create(builder, loc, first, constant(fetched.stride));
  Value address = arith::AddIOp::create(builder, loc, fetched.address, skipped);
  for (int64_t i = 0; i < share; ++i) {
    Value line = address;
    if (i > 0)
      line = arith::AddIOp::create(builder, loc, address, constant(i * fetched.stride));
    emitPrefetch(builder, loc, fetched.memory, line, level);
  }
}
