// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Nest/TransposedLoads.h"
#include "compiler/Kernels/Emission/RegisterTranspose.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace weft;

void TransposedLoads::emitSquare(Value base, int64_t extent, int64_t count,
                                 llvm::function_ref<void()> store) {
  squares.clear();
  for (const Access &access : accesses) {
    const Buffer &memory = *point.getBuffer(access.tensor);
    Buffer flat{memory.flat, {computeProduct(memory.shape)}};
    SmallVector<Value> rows;
    weft::emitSquare(
        point, loadDim, laneDim, base, extent, count, width,
        [&] { return point.asVectors(point.load(flat, *access.position)).front(); },
        [&](const Emitted &value) { rows.push_back(value.parts.front()); });
    squares.push_back(std::move(rows));
  }
  Value first = point.dimValue(loadDim);
  point.setDim(laneDim, base);
  point.setLanes({static_cast<int64_t>(laneDim), width, 1, extent});
  for (row = 0; row < count; ++row) {
    Value step = arith::ConstantIndexOp::create(kernel.builder, kernel.loc, row);
    point.setDim(loadDim, arith::AddIOp::create(kernel.builder, kernel.loc, first, step));
    point.forget();
    store();
  }
  squares.clear();
  point.setLanes(Lanes());
}

std::optional<Emitted> TransposedLoads::find(Value tensor, ArrayRef<AffineExpr> index) const {
  for (auto [access, rows] : llvm::zip(accesses, squares)) {
    auto shape = cast<RankedTensorType>(tensor.getType()).getShape();
    if (access.tensor == tensor && access.position == space.linearize(index, shape))
      return Emitted{{rows[row]}, false};
  }
  return std::nullopt;
}
