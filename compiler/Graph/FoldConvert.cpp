// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Folds of weft.convert: torch's conversions on constants, and ways there and back.
#include "compiler/Graph/ConstantFolding.h"

using namespace mlir;
using namespace weft;
using llvm::APFloat;
using llvm::APInt;
using llvm::APSInt;

/// Whether every value of `from` is a value of `to`.
static bool isLossless(Type from, Type to) {
  if (from.isInteger(1))
    return true;
  auto fromFloat = dyn_cast<FloatType>(from), toFloat = dyn_cast<FloatType>(to);
  if (fromFloat)
    return toFloat &&
           APFloat::isRepresentableBy(fromFloat.getFloatSemantics(), toFloat.getFloatSemantics());
  unsigned bits = from.getIntOrFloatBitWidth() - (isUnsigned(from) ? 0 : 1);
  if (toFloat)
    return bits <= toFloat.getFPMantissaWidth();
  if (to.isInteger(1) || (isUnsigned(to) && !isUnsigned(from)))
    return false;
  return bits <= to.getIntOrFloatBitWidth() - (isUnsigned(to) ? 0 : 1);
}

/// `value` as an element of the float or integer type `to`; nothing where torch leaves the
/// result to the machine.
static std::optional<Attribute> convertFloat(APFloat value, Type to) {
  if (to.isInteger(1))
    return IntegerAttr::get(to, value.isZero() ? 0 : 1);
  bool inexact;
  if (auto type = dyn_cast<FloatType>(to)) {
    value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
    return FloatAttr::get(type, value);
  }
  APSInt integer(to.getIntOrFloatBitWidth(), isUnsigned(to));
  APFloat::opStatus status = value.convertToInteger(integer, APFloat::rmTowardZero, &inexact);
  if (status & APFloat::opInvalidOp)
    return std::nullopt;
  return IntegerAttr::get(to, integer);
}

static Attribute convertInt(const APInt &value, bool fromUnsigned, Type to) {
  if (to.isInteger(1))
    return IntegerAttr::get(to, value.isZero() ? 0 : 1);
  if (auto type = dyn_cast<FloatType>(to)) {
    APFloat result(type.getFloatSemantics());
    result.convertFromAPInt(value, !fromUnsigned, APFloat::rmNearestTiesToEven);
    return FloatAttr::get(type, result);
  }
  unsigned width = to.getIntOrFloatBitWidth();
  return IntegerAttr::get(to, fromUnsigned ? value.zextOrTrunc(width) : value.sextOrTrunc(width));
}

static OpFoldResult convertConstant(DenseElementsAttr elements, RankedTensorType type) {
  Type from = elements.getElementType(), to = type.getElementType();
  auto convert = [&](Attribute element) -> std::optional<Attribute> {
    if (auto value = dyn_cast<FloatAttr>(element))
      return convertFloat(value.getValue(), to);
    return convertInt(cast<IntegerAttr>(element).getValue(), isUnsigned(from), to);
  };
  SmallVector<Attribute> converted;
  int64_t count = elements.isSplat() ? 1 : elements.getNumElements();
  for (Attribute element : llvm::make_range(elements.value_begin<Attribute>(),
                                            elements.value_begin<Attribute>() + count)) {
    std::optional<Attribute> value = convert(element);
    if (!value)
      return {};
    converted.push_back(*value);
  }
  return DenseElementsAttr::get(type, converted);
}

OpFoldResult ConvertOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<ConvertOp>())
    if (inner.getOperand().getType() == getType() &&
        isLossless(getType().getElementType(), inner.getType().getElementType()))
      return inner.getOperand();
  if (DenseElementsAttr elements = foldable(adaptor.getOperand()))
    return convertConstant(elements, getType());
  return {};
}
