// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/ConvPadding.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace weft;

Value weft::paddedByZeros(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> low,
                          ArrayRef<int64_t> high) {
  auto type = cast<RankedTensorType>(value.getType());
  auto scalar = RankedTensorType::get({}, type.getElementType());
  auto zero =
      ConstantOp::create(builder, loc, scalar, cast<ElementsAttr>(builder.getZeroAttr(scalar)));
  SmallVector<int64_t> shape(type.getShape());
  for (auto [size, before, after] : llvm::zip_equal(shape, low, high))
    size += before + after;
  auto padded = RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
  return PadOp::create(builder, loc, padded, value, zero, low, high);
}

void weft::movePaddingOut(OpBuilder &builder, ConvOp conv) {
  auto isZero = [](int64_t amount) { return amount == 0; };
  if (llvm::all_of(conv.getPadLow(), isZero) && llvm::all_of(conv.getPadHigh(), isZero))
    return;
  builder.setInsertionPoint(conv);
  SmallVector<int64_t> low = {0, 0}, high = {0, 0};
  llvm::append_range(low, conv.getPadLow());
  llvm::append_range(high, conv.getPadHigh());
  conv.getInputMutable().assign(paddedByZeros(builder, conv.getLoc(), conv.getInput(), low, high));
  SmallVector<int64_t> none(conv.getPadLow().size(), 0);
  conv.setPadLow(none);
  conv.setPadHigh(none);
}
