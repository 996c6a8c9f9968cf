// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Evaluating ops on constants.
#include "compiler/Graph/ConstantFolding.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace weft;
using llvm::APFloat;
using llvm::APInt;

DenseElementsAttr weft::foldable(Attribute attribute) {
  auto elements = dyn_cast_or_null<DenseElementsAttr>(attribute);
  if (!elements || elements.getNumElements() == 0)
    return {};
  if (!elements.isSplat() && elements.getNumElements() > maxFoldedElements)
    return {};
  return elements;
}

bool weft::isUnsigned(Type element) { return element.isInteger(1) || element.isUnsignedInteger(); }

bool weft::isIntSplat(Attribute attribute, int64_t value) {
  DenseElementsAttr elements = foldable(attribute);
  if (!elements || !elements.isSplat() || !isa<IntegerType>(elements.getElementType()))
    return false;
  APInt found = elements.getSplatValue<APInt>();
  return found == APInt(found.getBitWidth(), value, /*isSigned=*/true, /*implicitTrunc=*/true);
}

bool weft::isFloatSplat(Attribute attribute, double value) {
  DenseElementsAttr elements = foldable(attribute);
  if (!elements || !elements.isSplat() || !isa<FloatType>(elements.getElementType()))
    return false;
  return elements.getSplatValue<APFloat>().isExactlyValue(value);
}

DenseElementsAttr weft::intSplat(RankedTensorType type, int64_t value) {
  return DenseElementsAttr::get(type, APInt(type.getElementTypeBitWidth(), value,
                                            /*isSigned=*/true, /*implicitTrunc=*/true));
}

DenseElementsAttr weft::foldMove(RankedTensorType type, Attribute operand,
                                 llvm::function_ref<int64_t(ArrayRef<int64_t>)> source) {
  DenseElementsAttr elements = foldable(operand);
  if (!elements || type.getNumElements() == 0)
    return {};
  if (elements.isSplat())
    return elements.resizeSplat(type);
  if (type.getNumElements() > maxFoldedElements)
    return {};
  auto values = llvm::to_vector(elements.getValues<Attribute>());
  SmallVector<int64_t> strides = computeSuffixProduct(type.getShape());
  SmallVector<Attribute> moved;
  for (int64_t place = 0; place < type.getNumElements(); ++place)
    moved.push_back(values[source(delinearize(place, strides))]);
  return DenseElementsAttr::get(type, moved);
}
