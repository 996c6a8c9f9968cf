// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Outlines kernels: orders groups and effects, clones each group with its recomputed ops into a
// function, and leaves a call with their fused locations.
#include "compiler/Transforms/KernelOutlining.h"
#include "compiler/Graph/AttributeNames.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace mlir;
using namespace weft;

namespace {

/// What remains in the entry: one call, or one op with effects.
struct Step {
  SmallVector<Operation *> nodes;
  const KernelGroup *group = nullptr;
};

class Outliner {
public:
  Outliner(func::FuncOp entry, const FusionGraph &graph, SymbolTable &symbols)
      : entry(entry), graph(graph), symbols(symbols) {}

  void run(ArrayRef<KernelGroup> groups);

private:
  SmallVector<Step> order(ArrayRef<KernelGroup> groups) const;
  void outline(const KernelGroup &group);
  func::FuncOp createKernel(const KernelGroup &group, const KernelBody &body, Location loc);
  std::string nextName(StringRef stem);
  std::string nameOf(const KernelGroup &group, ArrayAttr unit);

  func::FuncOp entry;
  const FusionGraph &graph;
  SymbolTable &symbols;
  llvm::StringMap<unsigned> used;
  /// Maps the entry's values to the results of calls.
  IRMapping computed;
};

} // namespace

void Outliner::run(ArrayRef<KernelGroup> groups) {
  Block &block = entry.front();
  SmallVector<Step> steps = order(groups);
  SmallVector<Operation *> replaced;
  for (Operation &op : block)
    if (graph.getStructure(&op))
      replaced.push_back(&op);

  Operation *terminator = block.getTerminator();
  for (const Step &step : steps) {
    if (step.group) {
      outline(*step.group);
      continue;
    }
    for (OpOperand &operand : step.nodes.front()->getOpOperands())
      operand.set(computed.lookupOrDefault(operand.get()));
    step.nodes.front()->moveBefore(terminator);
  }
  for (OpOperand &operand : terminator->getOpOperands())
    operand.set(computed.lookupOrDefault(operand.get()));
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
}

/// Topological; among ready steps, program order.
SmallVector<Step> Outliner::order(ArrayRef<KernelGroup> groups) const {
  std::vector<Step> steps;
  DenseMap<Operation *, unsigned> stepOf;
  for (const KernelGroup &group : groups)
    steps.push_back({group.nodes, &group});
  for (Operation *node : graph.getNodes())
    if (!graph.getStructure(node) && !node->hasTrait<OpTrait::IsTerminator>())
      steps.push_back({{node}, nullptr});
  for (auto [number, step] : llvm::enumerate(steps))
    for (Operation *node : step.nodes)
      stepOf[node] = number;

  std::vector<llvm::SmallSetVector<unsigned, 4>> consumers(steps.size());
  std::vector<unsigned> missing(steps.size(), 0);
  for (auto [number, step] : llvm::enumerate(steps))
    for (Operation *node : step.nodes)
      for (Operation *consumer : graph.getConsumers(node)) {
        auto it = stepOf.find(consumer);
        if (it != stepOf.end() && it->second != number && consumers[number].insert(it->second))
          ++missing[it->second];
      }

  std::set<std::pair<unsigned, unsigned>> ready;
  auto makeReady = [&](unsigned number) {
    ready.emplace(graph.getPosition(steps[number].nodes.back()), number);
  };
  for (unsigned number = 0; number < steps.size(); ++number)
    if (missing[number] == 0)
      makeReady(number);
  SmallVector<Step> ordered;
  while (!ready.empty()) {
    unsigned number = ready.begin()->second;
    ready.erase(ready.begin());
    ordered.push_back(steps[number]);
    for (unsigned consumer : consumers[number])
      if (--missing[consumer] == 0)
        makeReady(consumer);
  }
  assert(ordered.size() == steps.size() && "grouping must not make cycles");
  return ordered;
}

/// Kernels are named after the op that determines their loops.
static StringRef stemOf(const KernelGroup &group, const FusionGraph &graph) {
  auto mnemonic = [](Operation *op) { return op->getName().stripDialect(); };
  if (group.anchor)
    return mnemonic(group.anchor);
  for (Operation *node : group.nodes)
    if (graph.getStructure(node)->kind == IterationKind::Reduction)
      return mnemonic(node);
  for (Operation *node : group.nodes)
    if (node->hasTrait<OpTrait::Elementwise>())
      return "elementwise";
  return mnemonic(group.nodes.back());
}

/// The kind of emitter for a kernel.
static StringRef kindOf(const KernelGroup &group, const FusionGraph &graph) {
  if (group.anchor) {
    IterationKind kind = graph.getStructure(group.anchor)->kind;
    if (kind == IterationKind::Contraction)
      return "contraction";
    if (kind == IterationKind::Composite || kind == IterationKind::Isolated)
      return group.anchor->getName().stripDialect();
  }
  return "nest";
}

std::string Outliner::nextName(StringRef stem) {
  std::string name;
  do
    name = (stem + "_" + Twine(used[stem]++)).str();
  while (symbols.lookup(name));
  return name;
}

void Outliner::outline(const KernelGroup &group) {
  KernelBody body = graph.getBody(group.nodes);
  SmallVector<Location> locs;
  for (Operation *op : body.ops)
    if (!matchPattern(op, m_Constant()) || body.dependent.contains(op))
      locs.push_back(op->getLoc());
  Location loc = FusedLoc::get(entry.getContext(), locs);

  func::FuncOp kernel = createKernel(group, body, loc);
  SmallVector<Value> operands;
  for (Value input : body.inputs)
    operands.push_back(computed.lookupOrDefault(input));
  OpBuilder builder(entry.front().getTerminator());
  auto call = func::CallOp::create(builder, loc, kernel, operands);
  computed.map(ValueRange(body.results), call.getResults());
}

/// A kernel of a primitive function has the function's name.
std::string Outliner::nameOf(const KernelGroup &group, ArrayAttr unit) {
  if (!unit)
    return nextName(stemOf(group, graph));
  StringRef name = cast<StringAttr>(unit[0]).getValue();
  return symbols.lookup(name) ? nextName(name) : name.str();
}

func::FuncOp Outliner::createKernel(const KernelGroup &group, const KernelBody &body,
                                    Location loc) {
  ArrayAttr unit = graph.getUnit(group.nodes.front());
  OpBuilder builder(entry.getContext());
  auto type = builder.getFunctionType(TypeRange(ValueRange(body.inputs.getArrayRef())),
                                      TypeRange(ValueRange(body.results)));
  auto kernel = func::FuncOp::create(loc, nameOf(group, unit), type);
  kernel.setPrivate();
  if (unit)
    kernel->setAttr(attr::primitive, builder.getUnitAttr());
  kernel->setAttr(attr::kernel, builder.getStringAttr(kindOf(group, graph)));
  symbols.insert(kernel);

  Block *block = kernel.addEntryBlock();
  builder.setInsertionPointToStart(block);
  IRMapping mapping;
  mapping.map(ValueRange(body.inputs.getArrayRef()), block->getArguments());
  for (Operation *op : body.ops)
    builder.clone(*op, mapping);
  SmallVector<Value> results;
  for (Value result : body.results)
    results.push_back(mapping.lookup(result));
  func::ReturnOp::create(builder, loc, results);
  return kernel;
}

void weft::outlineKernels(func::FuncOp entry, const FusionGraph &graph,
                          ArrayRef<KernelGroup> groups, SymbolTable &symbols) {
  Outliner(entry, graph, symbols).run(groups);
}
