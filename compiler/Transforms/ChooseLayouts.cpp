// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Walks a function once, in order: contractions choose layouts, the ops after them keep what they
// can, and an op that does not support a layout gets a relayout of its operand. Expects static
// shapes and one block; establishes the layout rule in Passes.td.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/OpCost.h"
#include "compiler/Graph/OpStructure.h"
#include "compiler/Graph/ViewLayouts.h"
#include "compiler/Transforms/ConvLayouts.h"
#include "compiler/Transforms/ConvPadding.h"
#include "compiler/Transforms/LinearLayers.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/PreparedValues.h"
#include "llvm/ADT/TypeSwitch.h"

namespace weft {
#define GEN_PASS_DEF_CHOOSELAYOUTS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

static LayoutAttr layoutOf(Value value) { return weft::layoutOf(tensorType(value)); }

static void setLayout(Value value, LayoutAttr layout) {
  value.setType(withLayout(tensorType(value), layout));
}

/// Values that any kernel computes on the fly, in any layout.
static bool isFree(Value value) { return placementOf(value.getDefiningOp()).anyLayout; }

/// The layout for ops on all of `values`: tiled first, then any order, then row-major. Values that
/// are computed on the fly are ignored unless all are.
static LayoutAttr commonLayout(ValueRange values) {
  bool allFree = llvm::all_of(values, isFree);
  LayoutAttr common;
  for (Value value : values) {
    LayoutAttr layout = layoutOf(value);
    if (!layout || (isFree(value) && !allFree))
      continue;
    if (!common || (layout.hasTile() && !common.hasTile()))
      common = layout;
  }
  return common;
}

namespace {

class LayoutChooser {
public:
  LayoutChooser(func::FuncOp function, int64_t lanes, const LinearLayouts &linearLayouts,
                bool rowMajor, bool matrixUnit, bool packsWeights)
      : function(function), lanes(lanes), rowMajor(rowMajor), matrixUnit(matrixUnit),
        builder(function.getContext()), linearLayouts(linearLayouts), packsWeights(packsWeights),
        layersApart(linearLayersApart(function)) {
    for (const LinearLayer &linear : linearLayers(function))
      for (Value weight : linear.weights)
        ++readers[weight];
  }

  /// Returns the number of relayouts inserted.
  int64_t run() {
    takeInputsAsTheyLie();
    SmallVector<Operation *> ops;
    for (Operation &op : function.front())
      ops.push_back(&op);
    for (Operation *op : ops)
      visit(op);
    return relayouts;
  }

private:
  void takeInputsAsTheyLie();
  void visit(Operation *op);

  void visitLinear(Operation *op, Value lhs, ArrayRef<int64_t> lhsContract, ValueRange rhs,
                   ArrayRef<int64_t> rhsContract);
  bool isReadByUnit(Operation *op, Value lhs, ValueRange rhs, ArrayRef<int64_t> rhsContract);
  void visitDot(DotGeneralOp dot);
  void visitBatchedDot(DotGeneralOp dot);
  void visitConv(ConvOp conv);
  void visitAttention(AttentionOp attention);
  /// Ops whose operands and result have one layout.
  void visitShared(Operation *op);
  /// Ops whose result keeps the layout of the first operand, or the nearest that it can keep.
  void visitFirstOperand(LayoutOpInterface op);
  void visitRowMajor(Operation *op);
  void visitReturn(func::ReturnOp exit);

  /// Relayouts operand `index` of `op` to `layout`, if it has another.
  void require(Operation *op, unsigned index, LayoutAttr layout) {
    op->setOperand(index, inLayout(op->getOperand(index), layout));
  }
  void requireRowMajor(Operation *op, unsigned firstOperand) {
    for (unsigned index = firstOperand; index < op->getNumOperands(); ++index)
      require(op, index, nullptr);
  }
  Value inLayout(Value value, LayoutAttr layout);
  Value makeInLayout(Value value, LayoutAttr layout);

  func::FuncOp function;
  int64_t lanes;
  bool rowMajor, matrixUnit;
  OpBuilder builder;
  LinearLayouts linearLayouts;
  bool packsWeights; ///< into blocks of columns, so that tokens stay row-major
  llvm::DenseSet<Operation *> layersApart;
  llvm::DenseMap<Value, int64_t> readers; ///< uses of each weight
  llvm::DenseMap<std::pair<Value, Attribute>, Value> moved;
  int64_t relayouts = 0;
};

} // namespace

/// Removes relayouts of arguments: ops request the layouts they need of those as well.
void LayoutChooser::takeInputsAsTheyLie() {
  for (auto relayout : llvm::make_early_inc_range(function.getOps<RelayoutOp>()))
    if (isa<BlockArgument>(relayout.getOperand())) {
      relayout.getResult().replaceAllUsesWith(relayout.getOperand());
      relayout.erase();
    }
}

//===----------------------------------------------------------------------===//
// Moving values
//===----------------------------------------------------------------------===//

Value LayoutChooser::inLayout(Value value, LayoutAttr layout) {
  if (layoutOf(value) == layout)
    return value;
  if (auto relayout = value.getDefiningOp<RelayoutOp>())
    return inLayout(relayout.getOperand(), layout);
  Value &result = moved[{value, layout}];
  if (!result)
    result = makeInLayout(value, layout);
  return result;
}

/// Inserted right after the definition, so that all later uses can share it.
Value LayoutChooser::makeInLayout(Value value, LayoutAttr layout) {
  builder.setInsertionPointAfterValue(value);
  RankedTensorType type = withLayout(tensorType(value), layout);
  if (auto constant = value.getDefiningOp<ConstantOp>())
    if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue()))
      return ConstantOp::create(builder, value.getLoc(), type, elements.reshape(type));
  if (isa_and_present<BroadcastInDimOp, IotaOp>(value.getDefiningOp())) {
    Operation *copy = builder.clone(*value.getDefiningOp());
    copy->getResult(0).setType(type);
    return copy->getResult(0);
  }
  ++relayouts;
  return RelayoutOp::create(builder, value.getLoc(), type, value);
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// Whether the matrix unit loads the rows from where they lie, and packs weights whose vectors run
/// along the result. A layer between others would have its neighbours' activations moved.
bool LayoutChooser::isReadByUnit(Operation *op, Value lhs, ValueRange rhs,
                                 ArrayRef<int64_t> rhsContract) {
  return tensorType(lhs).getElementType().isBF16() && isInByOut(rhsContract) &&
         layersApart.contains(op) && !isTiled(layoutOf(lhs)) && llvm::none_of(rhs, isCopiedWeight);
}

void LayoutChooser::visitLinear(Operation *op, Value lhs, ArrayRef<int64_t> lhsContract,
                                ValueRange rhs, ArrayRef<int64_t> rhsContract) {
  RankedTensorType lhsType = tensorType(lhs);
  bool contractsLast = lhsContract.size() == 1 && lhsContract[0] == lhsType.getRank() - 1;
  auto isMatrixOfWeights = [](Value value) {
    return tensorType(value).getRank() == 2 && isWeight(value);
  };
  LayoutAttr layout = linearLayouts.tokenBlocks(lhsType);
  bool enoughTokens = packsWeights
                          ? linearLayouts.suitPackedWeights(lhsType, readers.lookup(rhs.front()))
                          : bool(layout);
  if (!contractsLast || !enoughTokens || !llvm::all_of(rhs, isMatrixOfWeights)) {
    visitRowMajor(op);
    return;
  }
  if (packsWeights) {
    require(op, 0, nullptr);
    for (auto [index, weight] : llvm::enumerate(rhs))
      require(op, index + 1, linearLayouts.packed(tensorType(weight), 1 - rhsContract[0]));
    return;
  }
  if (matrixUnit && isReadByUnit(op, lhs, rhs, rhsContract)) {
    visitRowMajor(op);
    return;
  }
  bool alongRows = llvm::equal(rhsContract, ArrayRef<int64_t>{1});
  if (alongRows && layersApart.contains(op) && !isTiled(layoutOf(lhs)) &&
      linearLayouts.dotProductsCostLess(lhsType)) {
    visitRowMajor(op);
    return;
  }
  require(op, 0, layout);
  // Converted weights are copied with k contiguous, which contractions read fastest.
  if (isInByOut(rhsContract))
    for (auto [index, weight] : llvm::enumerate(rhs))
      if (isCopiedWeight(weight))
        require(op, index + 1, LayoutAttr::get(op->getContext(), {1, 0}, -1, 0));
  for (Value result : op->getResults())
    setLayout(result, layout);
}

void LayoutChooser::visitDot(DotGeneralOp dot) {
  if (dot.getLhsBatch().empty())
    visitLinear(dot, dot.getLhs(), dot.getLhsContract(), dot.getRhs(), dot.getRhsContract());
  else
    visitBatchedDot(dot);
}

/// As the scores of a decomposed attention: both operands contiguous along k. For short k, vectors
/// along k need a horizontal reduction per result, which costs more than transposing the right
/// side, so that vectors run along its columns.
void LayoutChooser::visitBatchedDot(DotGeneralOp dot) {
  visitRowMajor(dot);
  // Measured on 8 to 12 batches of 64 to 512 rows and columns, with k of 64 to 256: the transpose
  // is amortized by about 20 rows for short k and 60 for long k.
  constexpr int64_t fewestRows = 64;
  RankedTensorType lhs = dot.getLhs().getType(), rhs = dot.getRhs().getType();
  int64_t batches = dot.getLhsBatch().size(), rank = batches + 2, last = rank - 1;
  auto liesAlongSum = [&](RankedTensorType type, ArrayRef<int64_t> contract) {
    return type.getRank() == rank && llvm::equal(contract, ArrayRef{last}) &&
           !weft::layoutOf(type) && isa<Float32Type, Float64Type>(type.getElementType());
  };
  if (!liesAlongSum(lhs, dot.getLhsContract()) || !liesAlongSum(rhs, dot.getRhsContract()) ||
      lhs.getDimSize(last - 1) < fewestRows || rhs.getDimSize(last - 1) < lanes)
    return;
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(rank));
  std::swap(order[last - 1], order[last]);
  require(dot, 1, LayoutAttr::get(dot.getContext(), order, /*tileDim=*/-1, /*tileSize=*/0));
}

void LayoutChooser::visitConv(ConvOp conv) {
  std::optional<ConvLayouts> layouts = chooseConvLayouts(conv, lanes);
  if (!layouts) {
    requireRowMajor(conv, 0);
    movePaddingOut(builder, conv);
    return;
  }
  require(conv, 0, layouts->images);
  require(conv, 1, layouts->weight);
  movePaddingOut(builder, conv);
  setLayout(conv.getResult(), layouts->images);
}

/// Query, key and value are either all in token blocks or all row-major: one kernel for each case.
void LayoutChooser::visitAttention(AttentionOp attention) {
  ValueRange tensors = attention->getOperands().take_front(3);
  auto example = llvm::find_if(tensors, [](Value v) { return isInTokenBlocks(tensorType(v)); });
  bool enoughTokens = llvm::all_of(
      tensors, [&](Value tensor) { return linearLayouts.tokenBlocks(tensorType(tensor)); });
  if (example == tensors.end() || !enoughTokens) {
    visitRowMajor(attention);
    return;
  }
  ArrayRef<int64_t> order = layoutOf(*example).getOrder();
  auto blocks = [&](RankedTensorType type) {
    LayoutAttr chosen = linearLayouts.tokenBlocks(type);
    return LayoutAttr::get(type.getContext(), order, chosen.getTileDim(), chosen.getTileSize());
  };
  for (unsigned index : llvm::seq(3u))
    require(attention, index, blocks(tensorType(attention->getOperand(index))));
  requireRowMajor(attention, 3);
  setLayout(attention.getResult(), layoutOf(attention.getQuery()));
}

//===----------------------------------------------------------------------===//
// The rest
//===----------------------------------------------------------------------===//

void LayoutChooser::visitShared(Operation *op) {
  LayoutAttr layout = commonLayout(op->getOperands());
  if (auto sharing = dyn_cast<SharedLayoutOpInterface>(op))
    if (layout && !sharing.mayHaveLayout(layout))
      layout = nullptr;
  for (unsigned index : llvm::seq(op->getNumOperands()))
    require(op, index, layout);
  setLayout(op->getResult(0), layout);
}

void LayoutChooser::visitFirstOperand(LayoutOpInterface op) {
  require(op, 0, op.nearestLayout());
  FailureOr<LayoutAttr> kept = op.keptLayout();
  if (failed(kept)) {
    visitRowMajor(op);
    return;
  }
  requireRowMajor(op, 1);
  setLayout(op->getResult(0), *kept);
}

/// Contractions read weights of any layout in place.
void LayoutChooser::visitRowMajor(Operation *op) {
  for (unsigned index : llvm::seq(op->getNumOperands())) {
    bool readInPlace = isa<DotGeneralOp, MultiDotOp>(op) && isWeight(op->getOperand(index));
    if (!readInPlace)
      require(op, index, nullptr);
  }
  for (Value result : op->getResults())
    setLayout(result, nullptr);
}

void LayoutChooser::visitReturn(func::ReturnOp exit) {
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    require(exit, index, weft::layoutOf(cast<RankedTensorType>(type)));
}

void LayoutChooser::visit(Operation *op) {
  if (rowMajor && !isa<ConstantOp, RelayoutOp, func::ReturnOp>(op)) {
    visitRowMajor(op);
    if (auto conv = dyn_cast<ConvOp>(op))
      movePaddingOut(builder, conv);
    return;
  }
  if (op->hasTrait<OpTrait::Elementwise>() || isa<SharedLayoutOpInterface>(op))
    return visitShared(op);
  if (auto keeping = dyn_cast<LayoutOpInterface>(op))
    return visitFirstOperand(keeping);
  // What these prefer is a choice by cost, of layouts for several operands at once; what an op
  // keeps of the layout that it is given stands beside it, as its interfaces.
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](DotGeneralOp dot) { visitDot(dot); })
      .Case([&](MultiDotOp dot) {
        visitLinear(dot, dot.getLhs(), dot.getLhsContract(), dot.getRhs(), dot.getRhsContract());
      })
      .Case([&](ConvOp conv) { visitConv(conv); })
      .Case([&](WinogradConvOp conv) {
        WinogradLayouts layouts = chooseWinogradLayouts(conv, lanes);
        require(conv, 0, layouts.images);
        require(conv, 1, layouts.transformed);
        require(conv, 2, layouts.weight);
        setLayout(conv.getResult(), layouts.images);
      })
      .Case([&](AttentionOp attention) { visitAttention(attention); })
      // A constant keeps the layout of a relayout that was folded into it.
      .Case<ConstantOp, RelayoutOp>([](auto) {})
      .Case([&](func::ReturnOp exit) { visitReturn(exit); })
      .Default([&](Operation *) { visitRowMajor(op); });
}

namespace {

struct ChooseLayouts : weft::impl::ChooseLayoutsBase<ChooseLayouts> {
  using ChooseLayoutsBase::ChooseLayoutsBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    // Kernels that a user has lowered read and write row-major tensors.
    if (function.isExternal() || function->hasAttr(attr::kernel))
      return;
    LinearLayouts layouts(lanes, registers, lieMostlyInByOut(linearLayers(function)));
    numRelayouts +=
        LayoutChooser(function, lanes, layouts, rowMajor, matrixUnit, packsWeights(layouts)).run();
  }

private:
  bool packsWeights(const LinearLayouts &layouts) {
    func::FuncOp function = getOperation();
    if (rowMajor || !mayPackWeights(function))
      return false;
    OwningOpRef<func::FuncOp> inPlace = laidOut(layouts, false), packed = laidOut(layouts, true);
    return packingCostsLess(function, layouts, l2Bytes,
                            movedElements(*inPlace) - movedElements(*packed),
                            attentionInTokenBlocks(*inPlace));
  }

  OwningOpRef<func::FuncOp> laidOut(const LinearLayouts &layouts, bool packsWeights) {
    OwningOpRef<func::FuncOp> copy = getOperation().clone();
    LayoutChooser(*copy, lanes, layouts, rowMajor, matrixUnit, packsWeights).run();
    return copy;
  }

  /// Elements that the relayouts of `function` move in each call.
  static double movedElements(func::FuncOp function) {
    PreparedValues prepared(function);
    double moved = 0;
    for (auto relayout : function.getOps<RelayoutOp>())
      if (!prepared.contains(relayout.getOperand()))
        moved += double(relayout.getType().getNumElements());
    return moved;
  }
};

} // namespace
