// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interfaces by which ops say how their loops run, which layouts they keep and what they are
// for several steps at once, and how a family's file gives its ops rules for them.
#ifndef WEFT_COMPILER_GRAPH_OPSTRUCTURE_H
#define WEFT_COMPILER_GRAPH_OPSTRUCTURE_H

#include "compiler/Graph/Graph.h"

namespace weft {
class IterationBuilder;

/// Adjacent elements in memory have a distance of `step` along `dim`.
struct InnermostDim {
  int64_t dim;
  int64_t step = 1;

  bool operator==(const InnermostDim &) const = default;
};

/// Along `dim`, n elements of the operand have (n + more) / step + 1 windows, rounded down: `more`
/// is what is padded, less one, and less what a window needs beside its first element.
struct DimWindows {
  int64_t dim, more, step;
};
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

/// The same with `nearest`, a function or lambda from OpTy to LayoutAttr.
template <typename OpTy, auto rule, auto nearest>
struct NearestLayoutModel
    : LayoutOpInterface::ExternalModel<NearestLayoutModel<OpTy, rule, nearest>, OpTy> {
  llvm::FailureOr<LayoutAttr> keptLayout(mlir::Operation *op) const {
    return rule(mlir::cast<OpTy>(op));
  }
  LayoutAttr nearestLayout(mlir::Operation *op) const { return nearest(mlir::cast<OpTy>(op)); }
};
template <typename OpTy, auto rule, auto nearest> void keepLayout(mlir::MLIRContext *context) {
  OpTy::template attachInterface<NearestLayoutModel<OpTy, rule, nearest>>(*context);
}

/// The same of an op that keeps the layout of images.
template <typename OpTy, auto rule>
struct ImageLayoutModel : LayoutOpInterface::ExternalModel<ImageLayoutModel<OpTy, rule>, OpTy> {
  llvm::FailureOr<LayoutAttr> keptLayout(mlir::Operation *op) const {
    return rule(mlir::cast<OpTy>(op));
  }
  bool keepsImages(mlir::Operation *) const { return true; }
};
template <typename OpTy, auto rule> void keepImages(mlir::MLIRContext *context) {
  OpTy::template attachInterface<ImageLayoutModel<OpTy, rule>>(*context);
}

/// Attaches `rule`, a function or lambda from (OpTy, LayoutAttr) to bool, to OpTy.
template <typename OpTy, auto rule>
struct SharedLayoutModel
    : SharedLayoutOpInterface::ExternalModel<SharedLayoutModel<OpTy, rule>, OpTy> {
  bool mayHaveLayout(mlir::Operation *op, LayoutAttr layout) const {
    return rule(mlir::cast<OpTy>(op), layout);
  }
};
template <typename OpTy, auto rule> void shareLayout(mlir::MLIRContext *context) {
  OpTy::template attachInterface<SharedLayoutModel<OpTy, rule>>(*context);
}

/// Attaches `rule`, a function or lambda from (OpTy, InnermostDim) to std::optional<InnermostDim>,
/// to OpTy.
template <typename OpTy, auto rule>
struct ViewModel : ViewOpInterface::ExternalModel<ViewModel<OpTy, rule>, OpTy> {
  std::optional<InnermostDim> innermostDim(mlir::Operation *op, InnermostDim operand) const {
    return rule(mlir::cast<OpTy>(op), operand);
  }
};
template <typename OpTy, auto rule> void view(mlir::MLIRContext *context) {
  OpTy::template attachInterface<ViewModel<OpTy, rule>>(*context);
}

/// Attaches `rule`, a function or lambda from OpTy to a vector of DimWindows, to OpTy.
template <typename OpTy, auto rule>
struct WindowModel : WindowOpInterface::ExternalModel<WindowModel<OpTy, rule>, OpTy> {
  llvm::SmallVector<DimWindows> windows(mlir::Operation *op) const {
    return rule(mlir::cast<OpTy>(op));
  }
};
template <typename OpTy, auto rule> void slide(mlir::MLIRContext *context) {
  OpTy::template attachInterface<WindowModel<OpTy, rule>>(*context);
}

/// A copy of `op` on `first` and `rest`, with a result of type `type`.
mlir::Operation *copyOnStack(mlir::OpBuilder &builder, mlir::Operation *op,
                             mlir::RankedTensorType type, mlir::Value first, mlir::ValueRange rest);
/// Each dim of a tensor as a dim of a stack of such tensors.
llvm::SmallVector<int64_t> stackedDims(llvm::ArrayRef<int64_t> dims);
/// `rest`, of which there is one for each dim, with `first` for the dim of the stack.
llvm::SmallVector<int64_t> stackedWith(int64_t first, llvm::ArrayRef<int64_t> rest);

/// Attaches `rule`, a function or lambda of OpTy, to OpTy: it gives a copy that is already on the
/// stack, with a result of that type, the attributes that go with it.
template <typename OpTy, auto rule>
struct StackModel : StackableOpInterface::ExternalModel<StackModel<OpTy, rule>, OpTy> {
  mlir::Value stacked(mlir::Operation *op, mlir::OpBuilder &builder, mlir::RankedTensorType type,
                      mlir::Value first, mlir::ValueRange rest) const {
    mlir::Operation *copy = copyOnStack(builder, op, type, first, rest);
    rule(mlir::cast<OpTy>(copy));
    return copy->getResult(0);
  }
};
/// For ops whose attributes count dims from the last one, or have none.
inline void asItIs(mlir::Operation *) {}
template <typename OpTy, auto rule = asItIs> void stack(mlir::MLIRContext *context) {
  OpTy::template attachInterface<StackModel<OpTy, rule>>(*context);
}

template <typename OpTy> struct SumModel : SumOpInterface::ExternalModel<SumModel<OpTy>, OpTy> {};
/// Says of each of OpTys that it sums products of all of its operands.
template <typename... OpTys> void sum(mlir::MLIRContext *context) {
  (OpTys::template attachInterface<SumModel<OpTys>>(*context), ...);
}

/// Whether `op` computes each element of its result from those at the same place: elementwise ops
/// and activations.
bool isPointwise(mlir::Operation *op);

// By family; the dialect calls them when it is loaded.
void structureElementwise(mlir::MLIRContext *context);
void structureShape(mlir::MLIRContext *context);
void structureReduce(mlir::MLIRContext *context);
void structureContract(mlir::MLIRContext *context);
void structureIndex(mlir::MLIRContext *context);
void structureOrder(mlir::MLIRContext *context);
void structureComposite(mlir::MLIRContext *context);
void structureScan(mlir::MLIRContext *context);
void structureSlopes(mlir::MLIRContext *context);
void structureEffects(mlir::MLIRContext *context);

} // namespace weft

#endif
