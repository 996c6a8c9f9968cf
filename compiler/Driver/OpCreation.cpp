// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops made of data that nobody has checked yet. Nothing here knows a single op by name, but for
// the one whose attribute is optional.
#include "compiler/Driver/OpCreation.h"
#include "llvm/ADT/ScopeExit.h"
#include <numeric>

using namespace mlir;
using namespace weft;

/// The least and the largest number of operands that the op's traits allow.
static std::pair<size_t, size_t> operandCounts(RegisteredOperationName name) {
  constexpr size_t any = std::numeric_limits<size_t>::max();
  if (name.hasTrait<OpTrait::ZeroOperands>())
    return {0, 0};
  if (name.hasTrait<OpTrait::OneOperand>())
    return {1, 1};
  if (name.hasTrait<OpTrait::NOperands<2>::Impl>())
    return {2, 2};
  if (name.hasTrait<OpTrait::NOperands<3>::Impl>())
    return {3, 3};
  if (name.hasTrait<OpTrait::AtLeastNOperands<1>::Impl>())
    return {1, any};
  if (name.hasTrait<OpTrait::AtLeastNOperands<2>::Impl>())
    return {2, any};
  if (name.hasTrait<OpTrait::AtLeastNOperands<3>::Impl>())
    return {3, any};
  return {0, any};
}

static bool isOptional(OperationName op, StringAttr attribute) {
  return op.getStringRef() == AttentionOp::getOperationName() &&
         attribute == AttentionOp::getHiddenScoreAttrName(op);
}

/// What any op may carry beside its own, such as what tells of its derivative.
static bool isDiscardable(NamedAttribute attribute) {
  return attribute.getName().strref().starts_with("weft.");
}

LogicalResult weft::checkParts(const OperationState &state, ErrorFn error) {
  RegisteredOperationName name = *state.name.getRegisteredInfo();
  for (StringAttr attribute : name.getAttributeNames())
    if (!state.attributes.get(attribute) && !isOptional(state.name, attribute))
      return error() << "expected attribute '" << attribute.getValue() << "'";
  for (NamedAttribute attribute : state.attributes)
    if (!llvm::is_contained(name.getAttributeNames(), attribute.getName()) &&
        !isDiscardable(attribute))
      return error() << "unknown attribute '" << attribute.getName().getValue() << "'";

  auto [least, most] = operandCounts(name);
  size_t count = state.operands.size();
  if (auto sizes = dyn_cast_or_null<DenseI32ArrayAttr>(state.attributes.get("operandSegmentSizes")))
    least = most = std::accumulate(sizes.asArrayRef().begin(), sizes.asArrayRef().end(), 0);
  if (count < least || count > most)
    return error() << "expected " << (least == most ? "" : "at least ") << least
                   << " operands, found " << count;
  return success();
}

/// Ops keep their attributes in a property struct, and inference reads them from there.
LogicalResult weft::inferTypes(OperationState &state, bool typed, ErrorFn error) {
  RegisteredOperationName name = *state.name.getRegisteredInfo();
  MLIRContext &context = *state.getContext();
  DictionaryAttr attributes = state.attributes.getDictionary(&context);
  SmallVector<std::max_align_t> storage(
      llvm::divideCeil(name.getOpPropertyByteSize(), sizeof(std::max_align_t)));
  OpaqueProperties properties(storage.data());
  name.initOpProperties(properties, OpaqueProperties(nullptr));
  llvm::scope_exit release([&] { name.destroyOpProperties(properties); });
  if (name.getOpPropertyByteSize() &&
      failed(name.setOpPropertiesFromAttribute(name, properties, attributes, error)))
    return failure();
  if (typed || name.hasTrait<OpTrait::ZeroResults>())
    return success();
  auto *inference = name.getInterface<InferTypeOpInterface>();
  if (!inference)
    return error() << "expected \"types\", since this op does not infer them";
  if (succeeded(inference->inferReturnTypes(&context, state.location, state.operands, attributes,
                                            properties, {}, state.types)))
    return success();
  return error() << "cannot infer result types from operands of type "
                 << TypeRange(ValueRange(state.operands));
}
