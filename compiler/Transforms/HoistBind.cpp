// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is worth preparing from weights alone moves from @main into the entry @bind.
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"

namespace weft {
#define GEN_PASS_DEF_HOISTBIND
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

static bool isPreparedArgument(func::FuncOp main, unsigned number) {
  auto kind = main.getArgAttrOfType<StringAttr>(number, "weft.kind");
  return kind && kind.getValue() != "input" && kind.getValue() != "bound";
}

/// Whether the consumers of `relayout` read its elements often: tiles, and the weights of
/// convolutions. Others are index arithmetic in the kernel that reads them.
static bool isPacking(RelayoutOp relayout) {
  LayoutAttr layout = layoutOf(relayout.getType());
  return (layout && layout.hasTile()) ||
         llvm::any_of(relayout->getUsers(), [](Operation *user) { return isa<ConvOp>(user); });
}

/// Packing of what depends on weights, buffers and constants alone.
static SmallVector<RelayoutOp> findPacking(func::FuncOp main) {
  llvm::DenseSet<Value> prepared;
  for (BlockArgument argument : main.getArguments())
    if (isPreparedArgument(main, argument.getArgNumber()))
      prepared.insert(argument);

  SmallVector<RelayoutOp> packing;
  for (Operation &op : main.front()) {
    bool isPrepared = isPure(&op) && llvm::all_of(op.getOperands(), [&](Value operand) {
                        return prepared.contains(operand);
                      });
    if (!isPrepared)
      continue;
    prepared.insert_range(op.getResults());
    if (auto relayout = dyn_cast<RelayoutOp>(&op); relayout && isPacking(relayout))
      packing.push_back(relayout);
  }
  return packing;
}

/// Everything that `packing` needs, in the order of the block.
static SmallVector<Operation *> collectChains(func::FuncOp main, ArrayRef<RelayoutOp> packing) {
  llvm::SetVector<Operation *> needed;
  SmallVector<Operation *> pending(packing.begin(), packing.end());
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (!needed.insert(op))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        pending.push_back(producer);
  }
  SmallVector<Operation *> ordered;
  for (Operation &op : main.front())
    if (needed.contains(&op))
      ordered.push_back(&op);
  return ordered;
}

/// The arguments of @main that `ops` read, by number.
static llvm::SetVector<unsigned> collectArguments(ArrayRef<Operation *> ops) {
  llvm::SetVector<unsigned> numbers;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand))
        numbers.insert(argument.getArgNumber());
  return numbers;
}

/// Builds @bind behind @main from copies of `chains`; its results are those of `packing`.
static void createBind(func::FuncOp main, ArrayRef<Operation *> chains,
                       ArrayRef<RelayoutOp> packing) {
  llvm::SetVector<unsigned> arguments = collectArguments(chains);

  SmallVector<Type> inputs, results;
  SmallVector<DictionaryAttr> attributes;
  for (unsigned number : arguments) {
    inputs.push_back(main.getArgumentTypes()[number]);
    attributes.push_back(main.getArgAttrDict(number));
  }
  for (RelayoutOp relayout : packing)
    results.push_back(relayout.getType());

  OpBuilder builder(main.getContext());
  builder.setInsertionPointAfter(main);
  auto bind = func::FuncOp::create(builder, main.getLoc(), "bind",
                                   builder.getFunctionType(inputs, results));
  bind->setAttr("weft.entry", builder.getUnitAttr());
  bind.setAllArgAttrs(attributes);
  builder.setInsertionPointToStart(bind.addEntryBlock());

  IRMapping mapping;
  for (auto [number, argument] : llvm::zip_equal(arguments, bind.getArguments()))
    mapping.map(main.getArgument(number), argument);
  for (Operation *op : chains)
    builder.clone(*op, mapping);
  auto prepared = llvm::map_to_vector(
      packing, [&](RelayoutOp relayout) { return mapping.lookup(relayout.getResult()); });
  func::ReturnOp::create(builder, main.getLoc(), prepared);
}

/// Each of `packing` becomes a trailing argument of @main.
static LogicalResult takeAsArguments(func::FuncOp main, ArrayRef<RelayoutOp> packing) {
  Builder builder(main.getContext());
  int64_t index = 0;
  for (RelayoutOp relayout : packing) {
    unsigned number = main.getNumArguments();
    auto attributes = builder.getDictionaryAttr(
        {builder.getNamedAttr("weft.kind", builder.getStringAttr("bound")),
         builder.getNamedAttr("weft.name", builder.getStringAttr("bound." + Twine(index++)))});
    if (failed(main.insertArgument(number, relayout.getType(), attributes, relayout.getLoc())))
      return failure();
    relayout.getResult().replaceAllUsesWith(main.getArgument(number));
  }
  return success();
}

namespace {

struct HoistBind : weft::impl::HoistBindBase<HoistBind> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main || main.isExternal())
      return;
    SmallVector<RelayoutOp> packing = findPacking(main);
    if (packing.empty())
      return;
    SmallVector<Operation *> chains = collectChains(main, packing);
    createBind(main, chains, packing);
    if (failed(takeAsArguments(main, packing)))
      return signalPassFailure();
    for (Operation *op : llvm::reverse(chains))
      if (op->use_empty())
        op->erase();
    numBound += packing.size();
  }
};

} // namespace
