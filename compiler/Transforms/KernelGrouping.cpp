// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Greedy grouping. In program order, each node joins the groups of its producers: contractions
// first, so that adding two branches is the epilogue of a matmul, then the latest. Then reductions
// of one tensor without data flow between them are merged. A merge is rejected if the ops are not
// all of one call of a primitive function, or of none, if it makes a cycle, if there is no common
// domain (KernelDomain), if the anchor's emitter does not support the ops, if reductions would
// gather elements repeatedly or transpose what they read, or if runs of equal elements, or values
// that are compared with elements of themselves, would be read in the kernel that computes them.
// What stays apart for good is a remark.
#include "compiler/Transforms/KernelGrouping.h"
#include "compiler/Graph/ComparedValues.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/DynamicTopologicalOrder.h"
#include "compiler/Transforms/KernelDomain.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace weft;

/// Limits code size and live buffers of a kernel; far above what fusion of real layers needs.
static constexpr size_t mostOps = 64;
static constexpr size_t mostInputs = 24;
/// If a reduction covers nearly everything, elements computed from it would be computed by one
/// thread; from this size on they are worth a separate kernel.
static constexpr int64_t fewGridPoints = 4;
static constexpr int64_t manyRowElements = 1 << 16;

namespace {

class Grouping {
public:
  explicit Grouping(const FusionGraph &graph);
  std::vector<KernelGroup> run(bool fuse);

private:
  void joinProducers(Operation *node);
  void joinSiblings();
  StringRef tryMerge(unsigned into, unsigned from, ArrayRef<InputAlignment> alignments);
  void explain() const;
  bool hasDomain(const KernelBody &body, Operation *anchor, InputAlignment alignment) const;
  bool fitsAnchor(const KernelBody &body, Operation *anchor) const;
  bool readsElements(Operation *op) const;
  bool repeatsReads(const KernelBody &body) const;
  bool readsRuns(const KernelBody &body) const;
  bool readsCompared(const KernelBody &body) const;
  bool hasReduction(unsigned group) const;

  const FusionGraph &graph;
  std::vector<KernelGroup> groups;
  DenseMap<Operation *, unsigned> groupOf;
  DynamicTopologicalOrder order;
  /// Nodes that did not join the group of a producer, and why.
  struct Refusal {
    Operation *producer, *node;
    StringRef reason;
  };
  std::vector<Refusal> refusals;
};

} // namespace

static bool isAnchor(const IterationStructure &structure) {
  return structure.kind == IterationKind::Window || structure.kind == IterationKind::Contraction ||
         structure.kind == IterationKind::Composite || structure.kind == IterationKind::Isolated;
}

/// Ops with effects have groups of their own for the detection of cycles.
Grouping::Grouping(const FusionGraph &graph) : graph(graph), order(graph.getNodes().size()) {
  for (Operation *node : graph.getNodes()) {
    const IterationStructure *structure = graph.getStructure(node);
    groupOf[node] = groups.size();
    groups.push_back({{node}, structure && isAnchor(*structure) ? node : nullptr});
  }
}

std::vector<KernelGroup> Grouping::run(bool fuse) {
  if (fuse) {
    for (Operation *node : graph.getNodes())
      if (graph.getStructure(node))
        joinProducers(node);
    joinSiblings();
    explain();
  }
  llvm::erase_if(groups, [&](const KernelGroup &group) {
    return group.nodes.empty() || !graph.getStructure(group.nodes.front());
  });
  return std::move(groups);
}

void Grouping::joinProducers(Operation *node) {
  SmallVector<Operation *> producers(graph.getProducers(node));
  llvm::sort(producers, [&](Operation *a, Operation *b) {
    bool hasAnchorA = groups[groupOf[a]].anchor, hasAnchorB = groups[groupOf[b]].anchor;
    if (hasAnchorA != hasAnchorB)
      return hasAnchorA;
    return graph.getPosition(a) > graph.getPosition(b);
  });
  for (Operation *producer : producers) {
    if (!graph.getStructure(producer) || groupOf[producer] == groupOf[node])
      continue;
    StringRef reason =
        tryMerge(groupOf[producer], groupOf[node], {InputAlignment::Free, InputAlignment::Shared});
    if (!reason.empty())
      refusals.push_back({producer, node, reason});
  }
}

/// Other merges may have brought the two together since.
void Grouping::explain() const {
  for (const auto &[producer, node, reason] : refusals) {
    if (groupOf.lookup(producer) == groupOf.lookup(node))
      continue;
    std::string text = (node->getName().getStringRef() + " is not part of the kernel of " +
                        producer->getName().getStringRef() + ": " + reason)
                           .str();
    remark::missed(node->getLoc(), remark::RemarkOpts::name("fusion").category("weft-fuse-kernels"))
        << text;
  }
}

bool Grouping::hasReduction(unsigned group) const {
  return llvm::any_of(groups[group].nodes, [&](Operation *node) {
    const IterationStructure *structure = graph.getStructure(node);
    return structure && structure->kind == IterationKind::Reduction;
  });
}

/// Merges reductions that read the same tensor, whether or not their results are used together.
void Grouping::joinSiblings() {
  llvm::MapVector<Value, SmallVector<Operation *>> readers;
  for (unsigned group = 0; group < groups.size(); ++group)
    if (!groups[group].anchor && hasReduction(group))
      for (Value input : graph.getBody(groups[group].nodes).inputs)
        readers[input].push_back(groups[group].nodes.front());
  for (auto &[value, nodes] : readers)
    for (size_t i = 1; i < nodes.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        unsigned first = groupOf[nodes[j]], second = groupOf[nodes[i]];
        if (first != second && tryMerge(first, second, InputAlignment::Shared).empty())
          break;
      }
}

/// The ops of `body` that depend on `op`.
static SmallVector<Operation *> opsBehind(Operation *op, const KernelBody &body) {
  SmallVector<Operation *> behind{op};
  for (Operation *reader : body.ops)
    if (llvm::any_of(reader->getOperands(), [&](Value operand) {
          return llvm::is_contained(behind, operand.getDefiningOp());
        }))
      behind.push_back(reader);
  behind.erase(behind.begin());
  return behind;
}

/// Whether `op` gathers elements that its users read in rows. Whole rows of a table are contiguous.
bool Grouping::readsElements(Operation *op) const {
  if (auto gather = dyn_cast<GatherOp>(op)) {
    int64_t innermost = gather.getOperand().getType().getRank() - 1;
    return llvm::is_contained(gather.getIndexedDims(), innermost);
  }
  auto relayout = dyn_cast<RelayoutOp>(op);
  return graph.isGathered(op) || (relayout && graph.isMaterialized(op) && movesElements(relayout));
}

/// Whether several passes would gather the same elements: each reduction is a pass, and so is
/// storing a result of that size.
bool Grouping::repeatsReads(const KernelBody &body) const {
  return llvm::any_of(body.ops, [&](Operation *op) {
    if (!readsElements(op))
      return false;
    SmallVector<Operation *> behind = opsBehind(op, body);
    auto reductions = llvm::count_if(behind, llvm::IsaPred<ReduceOp>);
    int64_t elements = tensorType(op->getResult(0)).getNumElements();
    bool storesRows = llvm::any_of(body.results, [&](Value result) {
      Operation *source = result.getDefiningOp();
      return (source == op || llvm::is_contained(behind, source)) &&
             tensorType(result).getNumElements() >= elements;
    });
    return reductions > 0 && reductions + storesRows > 1;
  });
}

static auto readersIn(const KernelBody &body, Operation *op) {
  return llvm::make_filter_range(
      op->getUsers(), [&body](Operation *user) { return llvm::is_contained(body.ops, user); });
}

/// Whether a row of runs would be read in the kernel that computes it.
bool Grouping::readsRuns(const KernelBody &body) const {
  return llvm::any_of(body.ops, [&](Operation *op) {
    return graph.isRowOfRuns(op) && !readersIn(body, op).empty();
  });
}

/// Whether other loops might compute what is compared once more, and round otherwise.
bool Grouping::readsCompared(const KernelBody &body) const {
  return llvm::any_of(body.ops, [&](Operation *op) {
    return graph.isCompared(op) && !llvm::all_of(readersIn(body, op), staysInPlace);
  });
}

/// Whether values computed from reductions are stored in another layout than the reductions read:
/// vectors can only run along one of the two.
static bool turnsRows(const KernelBody &body) {
  auto turns = [&](Operation *op) {
    auto relayout = dyn_cast<RelayoutOp>(op);
    if (!relayout || !movesElements(relayout))
      return false;
    return llvm::any_of(body.inputs, [&](Value input) {
      RankedTensorType type = tensorType(input);
      return type.getNumElements() == relayout.getType().getNumElements() &&
             layoutOf(type) != layoutOf(relayout.getType());
    });
  };
  return llvm::any_of(body.ops, [&](Operation *op) {
    return isa<ReduceOp>(op) && llvm::any_of(opsBehind(op, body), turns);
  });
}

/// Tries each alignment of inputs in turn. Returns why the groups stay apart, or nothing.
StringRef Grouping::tryMerge(unsigned into, unsigned from, ArrayRef<InputAlignment> alignments) {
  if (graph.getUnit(groups[into].nodes.front()) != graph.getUnit(groups[from].nodes.front()))
    return "a primitive function is a unit of its own";
  if (groups[into].anchor && groups[from].anchor)
    return "each has loops of its own";
  KernelGroup merged = groups[into];
  llvm::append_range(merged.nodes, groups[from].nodes);
  llvm::sort(merged.nodes, [&](Operation *a, Operation *b) {
    return graph.getPosition(a) < graph.getPosition(b);
  });
  if (!merged.anchor)
    merged.anchor = groups[from].anchor;

  KernelBody body = graph.getBody(merged.nodes);
  if (body.ops.size() > mostOps || body.inputs.size() > mostInputs)
    return "the kernel would have too many ops or inputs";
  if (readsCompared(body))
    return "a value that meets elements of itself is read where it is stored";
  if (merged.anchor && !fitsAnchor(body, merged.anchor))
    return "only elementwise ops in the order of its results follow a contraction, window or "
           "composite in its kernel, and views alone precede it";
  if (!merged.anchor && (repeatsReads(body) || turnsRows(body) || readsRuns(body)))
    return "elements would be gathered several times";
  if (llvm::none_of(alignments, [&](InputAlignment alignment) {
        return hasDomain(body, merged.anchor, alignment);
      }))
    return "their loops have no common domain";
  if (!order.merge(into, from, [&](unsigned group, llvm::function_ref<void(unsigned)> visit) {
        for (Operation *node : groups[group].nodes)
          for (Operation *consumer : graph.getConsumers(node))
            visit(groupOf.lookup(consumer));
      }))
    return "the kernel would wait for itself through another op";

  for (Operation *node : groups[from].nodes)
    groupOf[node] = into;
  groups[from] = KernelGroup();
  groups[into] = std::move(merged);
  return "";
}

/// Whether `op` pads the result of a contraction or window, which can store to the interior of the
/// padding.
static bool isBorder(Operation *op, const KernelBody &body, const IterationStructure &anchor) {
  auto pad = dyn_cast<PadOp>(op);
  bool storesBetween =
      anchor.kind == IterationKind::Contraction || anchor.kind == IterationKind::Window;
  if (!pad || !storesBetween)
    return false;
  LayoutAttr layout = layoutOf(pad.getType());
  return matchPattern(pad.getValue(), m_Constant()) &&
         layout == layoutOf(pad.getOperand().getType()) && !isTiled(layout) &&
         llvm::none_of(op->getUsers(),
                       [&](Operation *user) { return llvm::is_contained(body.ops, user); });
}

/// The body without such pads.
static KernelBody withoutBorders(KernelBody body, const IterationStructure &anchor) {
  SmallVector<Operation *> borders;
  llvm::copy_if(body.ops, std::back_inserter(borders),
                [&](Operation *op) { return isBorder(op, body, anchor); });
  for (Operation *border : borders) {
    llvm::erase(body.ops, border);
    llvm::erase(body.results, border->getResult(0));
    body.dependent.erase(border);
  }
  return body;
}

bool Grouping::hasDomain(const KernelBody &whole, Operation *anchor,
                         InputAlignment alignment) const {
  KernelBody body = anchor ? withoutBorders(whole, *graph.getStructure(anchor)) : whole;
  FailureOr<KernelDomain> domain = inferKernelDomain(graph, body, anchor, alignment);
  return succeeded(domain) &&
         !(domain->hasReduction && domain->yieldsRows && domain->gridSize < fewGridPoints &&
           domain->rowSize >= manyRowElements);
}

static bool isRowMajor(Value value) { return !layoutOf(cast<RankedTensorType>(value.getType())); }

/// Elementwise with equal layouts: an epilogue can apply it in place.
static bool isPointwise(Operation *op, const IterationStructure &structure) {
  auto sameLayout = [&](Value operand) {
    return layoutOf(cast<RankedTensorType>(operand.getType())) ==
           layoutOf(cast<RankedTensorType>(op->getResult(0).getType()));
  };
  return structure.kind == IterationKind::Map && structure.isIdentity() &&
         llvm::all_of(op->getOperands(), sameLayout);
}

/// Whether `op` can follow `anchor`: contractions and windows take elementwise epilogues, possibly
/// through row-major reshapes; a composite stores its result through views.
static bool fitsBehind(Operation *op, const IterationStructure &structure,
                       const IterationStructure &anchor) {
  if (anchor.kind == IterationKind::Isolated)
    return false;
  if (anchor.kind == IterationKind::Composite)
    return structure.isBlockView() && structure.isExact();
  bool isReshape = structure.isBlockView() && structure.keepsElementOrder() &&
                   isRowMajor(op->getOperand(0)) && isRowMajor(op->getResult(0));
  return isReshape || isPointwise(op, structure);
}

/// Each result must depend on exactly one result of the anchor, as each has its own loops, and
/// nothing may precede the anchor.
bool Grouping::fitsAnchor(const KernelBody &body, Operation *anchor) const {
  const IterationStructure &structure = *graph.getStructure(anchor);
  DenseMap<Value, Value> origins;
  for (Value result : anchor->getResults())
    origins[result] = result;
  for (Operation *op : body.ops) {
    if (op == anchor || !body.dependent.contains(op))
      continue;
    if (!isBorder(op, body, structure) && !fitsBehind(op, *graph.getStructure(op), structure))
      return false;
    for (Value operand : op->getOperands())
      if (Value origin = origins.lookup(operand))
        for (Value result : op->getResults())
          if (origins.try_emplace(result, origin).first->second != origin)
            return false;
  }
  return llvm::all_of(body.results, [&](Value result) { return origins.contains(result); }) &&
         llvm::none_of(anchor->getOperands(), [&](Value operand) {
           Operation *producer = operand.getDefiningOp();
           return producer && body.dependent.contains(producer);
         });
}

std::vector<KernelGroup> weft::groupIntoKernels(const FusionGraph &graph, bool fuse) {
  return Grouping(graph).run(fuse);
}
