// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interfaces by which ops say how their loops run and which layouts they keep, and how a
// family's file gives its ops rules for them.
#ifndef WEFT_COMPILER_GRAPH_OPSTRUCTURE_H
#define WEFT_COMPILER_GRAPH_OPSTRUCTURE_H

#include "compiler/Graph/Graph.h"

namespace weft {
class IterationBuilder;
} // namespace weft

#include "compiler/Graph/OpStructure.h.inc"

namespace weft {

/// Attaches `rule`, a function or lambda of (OpTy, IterationBuilder &), to OpTy.
template <typename OpTy, auto rule>
struct IterationModel : IterationOpInterface::ExternalModel<IterationModel<OpTy, rule>, OpTy> {
  void describeIteration(mlir::Operation *op, IterationBuilder &builder) const {
    rule(mlir::cast<OpTy>(op), builder);
  }
};
template <typename OpTy, auto rule> void iterate(mlir::MLIRContext *context) {
  OpTy::template attachInterface<IterationModel<OpTy, rule>>(*context);
}

/// Attaches `rule`, a function or lambda from OpTy to FailureOr<LayoutAttr>, to OpTy.
template <typename OpTy, auto rule>
struct LayoutModel : LayoutOpInterface::ExternalModel<LayoutModel<OpTy, rule>, OpTy> {
  llvm::FailureOr<LayoutAttr> keptLayout(mlir::Operation *op) const {
    return rule(mlir::cast<OpTy>(op));
  }
};
template <typename OpTy, auto rule> void keepLayout(mlir::MLIRContext *context) {
  OpTy::template attachInterface<LayoutModel<OpTy, rule>>(*context);
}

/// Whether `op` computes each element of its result from those at the same place: elementwise ops
/// and activations.
bool isPointwise(mlir::Operation *op);

// By family; the dialect calls them when it is loaded.
void structureShape(mlir::MLIRContext *context);
void structureReduce(mlir::MLIRContext *context);
void structureContract(mlir::MLIRContext *context);
void structureIndex(mlir::MLIRContext *context);
void structureOrder(mlir::MLIRContext *context);
void structureComposite(mlir::MLIRContext *context);

} // namespace weft

#endif
