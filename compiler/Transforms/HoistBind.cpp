// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Moves computations that depend on weights alone, and are worth it, from @main to the entry @bind.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/EntryRole.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/Preparations.h"
#include "mlir/IR/IRMapping.h"

namespace weft {
#define GEN_PASS_DEF_HOISTBIND
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

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
  auto bind = createEntry(builder, main.getLoc(), EntryRole::bind,
                          builder.getFunctionType(inputs, results));
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
    func::FuncOp main = entryOf(getOperation(), EntryRole::main);
    if (!main)
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
