// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/ConvPadding.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace weft;

void weft::movePaddingOut(OpBuilder &builder, ConvOp conv) {
  auto isZero = [](int64_t amount) { return amount == 0; };
  if (llvm::all_of(conv.getPadLow(), isZero) && llvm::all_of(conv.getPadHigh(), isZero))
    return;
  builder.setInsertionPoint(conv);
  RankedTensorType type = conv.getInput().getType();
  auto scalar = RankedTensorType::get({}, type.getElementType());
  auto zero = ConstantOp::create(builder, conv.getLoc(), scalar,
                                 cast<ElementsAttr>(builder.getZeroAttr(scalar)));
  SmallVector<int64_t> low = {0, 0}, high = {0, 0}, shape(type.getShape());
  llvm::append_range(low, conv.getPadLow());
  llvm::append_range(high, conv.getPadHigh());
  for (auto [size, before, after] : llvm::zip_equal(shape, low, high))
    size += before + after;
  auto paddedType = RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
  conv.getInputMutable().assign(
      PadOp::create(builder, conv.getLoc(), paddedType, conv.getInput(), zero, low, high));
  SmallVector<int64_t> none(conv.getPadLow().size(), 0);
  conv.setPadLow(none);
  conv.setPadHigh(none);
}
