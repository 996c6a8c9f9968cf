// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Moves computations that depend on weights alone, and are worth it, from @main to the entry @bind.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/PreparedValues.h"
#include "mlir/IR/IRMapping.h"

namespace weft {
#define GEN_PASS_DEF_HOISTBIND
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

static bool isContraction(Operation *op) { return isa<ConvOp, DotGeneralOp, MultiDotOp>(op); }

/// Whether the users of `relayout` read its elements repeatedly: tiled layouts, and weights of
/// contractions. For others it is index arithmetic in the kernel that reads them.
static bool isPacking(RelayoutOp relayout) {
  return isTiled(layoutOf(relayout.getType())) || llvm::any_of(relayout->getUsers(), isContraction);
}

/// Ops that kernels recompute on the fly.
static bool isRepeated(Operation *op) {
  return isa<BroadcastInDimOp, ConcatOp, ConstantOp, ConvertOp, GatherOp, IotaOp, PadOp, RelayoutOp,
             ReshapeOp, SliceOp, TransposeOp>(op);
}

/// Contractions read memory: the conversion of an operand would be a separate kernel in each call.
static bool isConvertedForContraction(Operation *op) {
  return isa<ConvertOp>(op) && llvm::any_of(op->getUsers(), isContraction);
}

/// Of prepared values that are rounded, prepare the rounded value: it takes less memory.
static bool isRoundedPreparation(Operation *op, const PreparedValues &prepared) {
  auto convert = dyn_cast<ConvertOp>(op);
  if (!convert)
    return false;
  Value exact = convert.getOperand();
  Operation *producer = exact.getDefiningOp();
  return producer && !isRepeated(producer) && prepared.dependsOnWeight(exact) &&
         getElementTypeOrSelf(convert.getType()).getIntOrFloatBitWidth() <
             getElementTypeOrSelf(exact.getType()).getIntOrFloatBitWidth();
}

/// The results worth preparing among the producers of `values`, through recomputed ops.
static llvm::DenseSet<Value> findWorthwhile(SmallVector<Value> values,
                                            const PreparedValues &prepared) {
  llvm::DenseSet<Value> found, seen;
  while (!values.empty()) {
    Value value = values.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !prepared.contains(value) || !seen.insert(value).second)
      continue;
    auto relayout = dyn_cast<RelayoutOp>(op);
    if ((relayout && isPacking(relayout)) || isRoundedPreparation(op, prepared))
      found.insert(value);
    else if (isRepeated(op) && !isConvertedForContraction(op))
      llvm::append_range(values, op->getOperands());
    else if (prepared.dependsOnWeight(value))
      found.insert(value);
  }
  return found;
}

/// Packing and arithmetic that depends on weights and buffers alone and is used by the rest of the
/// function, in block order. Excludes returned values, which belong to the caller and would be
/// shared, except packed ones, which cannot be results themselves.
static SmallVector<Value> findPreparations(func::FuncOp main) {
  PreparedValues prepared(main);
  SmallVector<Value> read, returned;
  for (Operation &op : main.front()) {
    bool isPrepared = op.getNumResults() > 0 && prepared.contains(op.getResult(0));
    if (!isPrepared)
      llvm::append_range(isa<func::ReturnOp>(op) ? returned : read, op.getOperands());
  }
  llvm::DenseSet<Value> worthwhile = findWorthwhile(read, prepared);
  llvm::DenseSet<Value> ofCaller = findWorthwhile(returned, prepared);
  SmallVector<Value> ordered;
  for (Operation &op : main.front())
    for (Value result : op.getResults())
      if (ofCaller.contains(result) ? isa<RelayoutOp>(op) : worthwhile.contains(result))
        ordered.push_back(result);
  return ordered;
}

/// All producers of `prepared`, in block order.
static SmallVector<Operation *> collectChains(func::FuncOp main, ArrayRef<Value> prepared) {
  llvm::SetVector<Operation *> needed;
  auto pending = llvm::map_to_vector(prepared, [](Value value) { return value.getDefiningOp(); });
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

/// The numbers of @main's arguments that `ops` read.
static llvm::SetVector<unsigned> collectArguments(ArrayRef<Operation *> ops) {
  llvm::SetVector<unsigned> numbers;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand))
        numbers.insert(argument.getArgNumber());
  return numbers;
}

/// Builds @bind after @main from clones of `chains`; its results are `prepared`.
static void createBind(func::FuncOp main, ArrayRef<Operation *> chains, ArrayRef<Value> prepared) {
  llvm::SetVector<unsigned> arguments = collectArguments(chains);

  SmallVector<Type> inputs, results;
  SmallVector<DictionaryAttr> attributes;
  for (unsigned number : arguments) {
    inputs.push_back(main.getArgumentTypes()[number]);
    attributes.push_back(main.getArgAttrDict(number));
  }
  for (Value value : prepared)
    results.push_back(value.getType());

  OpBuilder builder(main.getContext());
  builder.setInsertionPointAfter(main);
  auto bind = func::FuncOp::create(builder, main.getLoc(), "bind",
                                   builder.getFunctionType(inputs, results));
  bind->setAttr(attr::entry, builder.getUnitAttr());
  bind.setAllArgAttrs(attributes);
  builder.setInsertionPointToStart(bind.addEntryBlock());

  IRMapping mapping;
  for (auto [number, argument] : llvm::zip_equal(arguments, bind.getArguments()))
    mapping.map(main.getArgument(number), argument);
  for (Operation *op : chains)
    builder.clone(*op, mapping);
  auto copies = llvm::map_to_vector(prepared, [&](Value value) { return mapping.lookup(value); });
  func::ReturnOp::create(builder, main.getLoc(), copies);
}

/// Turns `prepared` into trailing arguments of @main.
static LogicalResult takeAsArguments(func::FuncOp main, ArrayRef<Value> prepared) {
  Builder builder(main.getContext());
  unsigned first = main.getNumArguments();
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  SmallVector<Location> locations;
  for (auto [index, value] : llvm::enumerate(prepared)) {
    types.push_back(value.getType());
    attributes.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr(attr::kind, builder.getStringAttr("bound")),
         builder.getNamedAttr(attr::name, builder.getStringAttr("bound." + Twine(index)))}));
    locations.push_back(value.getLoc());
  }
  SmallVector<unsigned> places(prepared.size(), first);
  if (failed(main.insertArguments(places, types, attributes, locations)))
    return failure();
  for (auto [index, value] : llvm::enumerate(prepared))
    Value(value).replaceAllUsesWith(main.getArgument(first + index));
  return success();
}

namespace {

struct HoistBind : weft::impl::HoistBindBase<HoistBind> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main || main.isExternal())
      return;
    SmallVector<Value> prepared = findPreparations(main);
    if (prepared.empty())
      return;
    SmallVector<Operation *> chains = collectChains(main, prepared);
    createBind(main, chains, prepared);
    if (failed(takeAsArguments(main, prepared)))
      return signalPassFailure();
    for (Operation *op : llvm::reverse(chains))
      if (op->use_empty())
        op->erase();
    numBound += prepared.size();
  }
};

} // namespace
