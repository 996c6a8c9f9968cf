// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and type inference of the ops that compute each element on its own.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/OpCost.h"
#include "compiler/Graph/OpStructure.h"

using namespace mlir;
using namespace weft;

LogicalResult CmpOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                      Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(tensorType(adaptor.getLhs()).clone(IntegerType::get(context, 1)));
  return success();
}

/// Elementwise ops keep shape and layout, whatever they do to the element type.
static LogicalResult checkSamePlaces(StringRef name, RankedTensorType type, RankedTensorType result,
                                     ErrorFn error) {
  if (type.getShape() != result.getShape())
    return error() << "expected " << name << " of the result's shape [" << result.getShape()
                   << "], found [" << type.getShape() << "]";
  if (type.getEncoding() == result.getEncoding())
    return success();
  auto found = error() << "expected " << name << " of the result's layout";
  if (LayoutAttr layout = layoutOf(type))
    return found << ", found " << layout;
  return found << ", found row-major";
}

LogicalResult SelectOp::verify() {
  return checkSamePlaces("condition", getCondition().getType(), getType(),
                         [&] { return emitOpError(); });
}

LogicalResult ConvertOp::verify() {
  return checkSamePlaces("operand", getOperand().getType(), getType(),
                         [&] { return emitOpError(); });
}

/// Others are functions. Who asks for Philox wants the bits drawn again, not kept.
void weft::structureElementwise(MLIRContext *context) {
  takes<OpWork::additions(1), AddOp, SubOp, MulOp, NegOp, AbsOp, SignOp, NotOp, AndOp, OrOp, XorOp,
        MaxOp, MinOp, CmpOp, SelectOp, ConvertOp, CeilOp, FloorOp, TruncOp, RoundEvenOp>(context);
  takes<OpWork{OpWork::Kind::Nothing}, PhiloxOp>(context);
  place<Placement{.repeated = true}, ConvertOp>(context);
}
