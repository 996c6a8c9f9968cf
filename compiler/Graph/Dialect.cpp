// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Registers the dialect with its ops and attributes.
#include "compiler/Graph/EntryRole.h"
#include "compiler/Graph/OpCost.h"
#include "compiler/Graph/OpStructure.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;

#include "compiler/Graph/Dialect.cpp.inc"
#include "compiler/Graph/Enums.cpp.inc"
#include "compiler/Graph/Interfaces.cpp.inc"
#include "compiler/Graph/OpCost.cpp.inc"
#include "compiler/Graph/OpStructure.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/Graph/Attributes.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/Graph/Ops.cpp.inc"

void WeftDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/Graph/Attributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/Graph/Ops.cpp.inc"
      >();
  structureElementwise(getContext());
  structureShape(getContext());
  structureReduce(getContext());
  structureContract(getContext());
  structureIndex(getContext());
  structureOrder(getContext());
  structureComposite(getContext());
  structureScan(getContext());
  structureSlopes(getContext());
  structureEffects(getContext());
}

Operation *WeftDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                            Location location) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, location, elements);
}
