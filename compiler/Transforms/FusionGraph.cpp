// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decides which ops are computed once and which are recomputed in each kernel that uses them, and
// connects the former.
#include "compiler/Transforms/FusionGraph.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/ComparedValues.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Transforms/ContractionViews.h"
#include "compiler/Transforms/InnermostDim.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace weft;

/// Recomputing this many elements costs less than a separate kernel.
static constexpr int64_t fewElements = 64;
/// A mask with at least this many elements per element that it is computed from is cheaper to
/// recompute than to load.
static constexpr int64_t maskExpansion = 16;
/// The longest chain of arithmetic that is recomputed: recurrences on small states would otherwise
/// be recomputed from their start.
static constexpr unsigned mostRepeatedArithmetic = 8;

FailureOr<FusionGraph> FusionGraph::build(func::FuncOp entry) {
  Block &block = entry.front();
  FusionGraph graph;
  if (failed(graph.describe(block)))
    return failure();
  graph.materialize(block);
  graph.chooseRepeated(block);
  graph.connect(block);
  return graph;
}

const IterationStructure *FusionGraph::getStructure(Operation *op) const {
  auto it = structures.find(op);
  return it == structures.end() ? nullptr : it->second.get();
}

ArrayRef<Operation *> FusionGraph::getProducers(Operation *node) const {
  auto it = producers.find(node);
  return it == producers.end() ? ArrayRef<Operation *>() : it->second;
}

ArrayRef<Operation *> FusionGraph::getConsumers(Operation *node) const {
  auto it = consumers.find(node);
  return it == consumers.end() ? ArrayRef<Operation *>() : it->second;
}

//===----------------------------------------------------------------------===//
// Construction
//===----------------------------------------------------------------------===//

LogicalResult FusionGraph::describe(Block &block) {
  for (auto [position, op] : llvm::enumerate(block)) {
    positions[&op] = position;
    if (auto unit = op.getAttrOfType<ArrayAttr>(attr::primitive)) {
      units[&op] = unit;
      op.removeAttr(attr::primitive);
    }
    if (std::optional<IterationStructure> structure = getIterationStructure(&op))
      structures[&op] = std::make_unique<IterationStructure>(std::move(*structure));
    else if (isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      return op.emitOpError("expected a primitive op of static shape, ahead of fusion");
  }
  return success();
}

/// Materializes what effects and the caller read, what primitive functions return, what is compared
/// with elements of itself, and blocked operands of kernels.
void FusionGraph::materialize(Block &block) {
  compared = comparedValues(block, Again::Loops);
  for (Operation *op : compared)
    if (const IterationStructure *structure = getStructure(op);
        structure && structure->kind != IterationKind::View)
      materialized.insert(op);
  for (Operation &op : block) {
    const IterationStructure *structure = getStructure(&op);
    for (auto [number, operand] : llvm::enumerate(op.getOperands())) {
      Operation *producer = operand.getDefiningOp();
      bool leavesUnit = producer && getUnit(producer) && getUnit(producer) != getUnit(&op);
      if (!structure || leavesUnit) {
        if (producer)
          materialized.insert(producer);
      } else if (structure->blocked[number]) {
        materializeBlockedOperand(operand);
      }
    }
    if (structure && structure->kind == IterationKind::Composite)
      materializeViewsOfComposite(&op);
    if (auto attention = dyn_cast<AttentionOp>(op))
      materializeJoinedRows(attention);
    if (auto reduce = dyn_cast<ReduceOp>(op))
      materializeRelayoutOfRows(reduce);
    if (auto broadcast = dyn_cast<BroadcastInDimOp>(op))
      materializeRuns(broadcast);
    if (auto relayout = dyn_cast<RelayoutOp>(op))
      materializeTurned(relayout);
    if (auto dot = dyn_cast<DotGeneralOp>(op))
      for (Value operand : operandsToStore(dot))
        materialized.insert(operand.getDefiningOp());
  }
}

/// A kernel may read its blocked operands with strides, so only the source of strided views has to
/// be materialized.
void FusionGraph::materializeBlockedOperand(Value operand) {
  Operation *producer = operand.getDefiningOp();
  while (producer) {
    const IterationStructure *structure = getStructure(producer);
    if (!structure || !structure->isBlockView())
      break;
    producer = producer->getOperand(0).getDefiningOp();
  }
  if (producer)
    materialized.insert(producer);
}

/// Whether a dim of the result after the first, which batches share, is several of the operand's.
static bool joinsInnerDims(ReshapeOp reshape) {
  ArrayRef<int64_t> from = tensorType(reshape.getOperand()).getShape();
  int64_t left = 1; // of a dim that the result has in parts
  for (int64_t size : llvm::reverse(reshape.getType().getShape().drop_front())) {
    int64_t taken = left, parts = left > 1;
    for (; !from.empty() && taken < size; from = from.drop_back()) {
      taken *= from.back();
      parts += from.back() > 1;
    }
    if (size > 1 && (parts > 1 || taken % size != 0))
      return true;
    left = size > 1 ? taken / size : left;
  }
  return false;
}

/// Attention reads its rows at even distances: rows that a reshape has joined from dims which a
/// transpose had moved apart, as those of the windows of an image, are materialized.
void FusionGraph::materializeJoinedRows(AttentionOp attention) {
  for (Value operand : attention.getOperands().take_front(3)) {
    Operation *joining = nullptr;
    for (Operation *view = operand.getDefiningOp(); view;
         view = view->getOperand(0).getDefiningOp()) {
      const IterationStructure *structure = getStructure(view);
      if (!structure || !structure->isBlockView() || materialized.contains(view))
        break;
      if (auto reshape = dyn_cast<ReshapeOp>(view); reshape && joinsInnerDims(reshape))
        joining = view;
      else if (joining && isa<TransposeOp>(view)) {
        materialized.insert(joining);
        break;
      }
    }
  }
}

/// A composite stores its result through the views of its only use.
void FusionGraph::materializeViewsOfComposite(Operation *op) {
  Operation *last = op;
  while (last->getNumResults() == 1 && last->getResult(0).hasOneUse()) {
    Operation *user = *last->getResult(0).getUsers().begin();
    const IterationStructure *structure = getStructure(user);
    if (!structure || !structure->isBlockView() || !structure->isExact())
      break;
    last = user;
  }
  if (last != op)
    materialized.insert(last);
}

bool weft::movesElements(RelayoutOp relayout) {
  return !isTiled(layoutOf(relayout.getOperand().getType())) &&
         !isTiled(layoutOf(relayout.getType()));
}

/// Whether a value derived from `relayout`, elementwise or by reductions, is relaid out to the
/// original order.
bool FusionGraph::returnsToOrder(RelayoutOp relayout) const {
  LayoutAttr order = layoutOf(relayout.getOperand().getType());
  llvm::SmallSetVector<Operation *, 16> reached;
  reached.insert(relayout);
  for (size_t i = 0; i < reached.size(); ++i)
    for (Operation *user : reached[i]->getUsers()) {
      auto back = dyn_cast<RelayoutOp>(user);
      if (back && layoutOf(back.getType()) == order)
        return true;
      const IterationStructure *structure = getStructure(user);
      if (structure &&
          llvm::is_contained({IterationKind::View, IterationKind::Map, IterationKind::Reduction},
                             structure->kind))
        reached.insert(user);
    }
  return false;
}

/// Each reduction of a norm would gather its rows from memory in another order, unless vectors run
/// across rows throughout.
void FusionGraph::materializeRelayoutOfRows(ReduceOp reduce) {
  Value operand = reduce.getOperand();
  std::optional<InnermostDim> innermost = innermostOf(operand);
  if (operand.hasOneUse() || !innermost)
    return;
  while (isa_and_present<TransposeOp, ReshapeOp>(operand.getDefiningOp()))
    operand = operand.getDefiningOp()->getOperand(0);
  auto relayout = operand.getDefiningOp<RelayoutOp>();
  if (!relayout)
    return;
  // Also along a tiled dim, as vectors do not cross tiles.
  bool alongInnermost = llvm::is_contained(reduce.getDims(), innermost->dim);
  if (alongInnermost || (movesElements(relayout) && !returnsToOrder(relayout))) {
    materialized.insert(relayout);
    gathered.insert(relayout);
  }
}

/// Whether elements along a row of `value` come in runs of equal ones, as those shared by the
/// channels of a group, or are computed elementwise from such.
static bool holdsRuns(Value value) {
  llvm::SmallSetVector<Value, 8> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i) {
    Operation *producer = values[i].getDefiningOp();
    if (producer && producer->hasTrait<OpTrait::Elementwise>()) {
      values.insert(producer->operand_begin(), producer->operand_end());
      continue;
    }
    auto reshape = dyn_cast_if_present<ReshapeOp>(producer);
    auto runs = reshape ? reshape.getOperand().getDefiningOp<BroadcastInDimOp>() : nullptr;
    int64_t innermost = runs ? runs.getType().getRank() - 1 : 0;
    if (runs && !llvm::is_contained(runs.getDims(), innermost) &&
        runs.getType().getDimSize(innermost) > 1)
      return true;
  }
  return false;
}

/// A row of runs that is broadcast to many rows would be read element by element for each:
/// materialize it.
void FusionGraph::materializeRuns(BroadcastInDimOp broadcast) {
  constexpr int64_t manyRows = 8;
  Value row = broadcast.getOperand();
  int64_t rows = broadcast.getType().getNumElements() / tensorType(row).getNumElements();
  if (rows >= manyRows && holdsRuns(row)) {
    materialized.insert(row.getDefiningOp());
    rowsOfRuns.insert(row.getDefiningOp());
  }
}

/// Whether rows are concatenated, as by reflection padding.
static bool joinsRows(Value value) {
  auto concat = value.getDefiningOp<ConcatOp>();
  if (!concat)
    return false;
  return int64_t(concat.getDim()) == tensorType(value).getRank() - 1 ||
         llvm::any_of(concat.getOperands(), joinsRows);
}

/// A transpose in registers would read runs and concatenated rows element by element: materialize
/// them.
void FusionGraph::materializeTurned(RelayoutOp relayout) {
  Value rows = relayout.getOperand();
  if (auto pad = rows.getDefiningOp<PadOp>())
    rows = pad.getOperand();
  if (!movesElements(relayout) || layoutOf(tensorType(rows)) ||
      !(holdsRuns(rows) || joinsRows(rows)))
    return;
  materialized.insert(rows.getDefiningOp());
  rowsOfRuns.insert(rows.getDefiningOp());
}

void FusionGraph::chooseRepeated(Block &block) {
  for (Operation &op : block) {
    const IterationStructure *structure = getStructure(&op);
    if (!structure || materialized.contains(&op))
      continue;
    unsigned arithmetic = structure->kind == IterationKind::View ? 0 : 1;
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        arithmetic += repeated.lookup(producer);
    bool isView = structure->kind == IterationKind::View;
    if (isView || (arithmetic <= mostRepeatedArithmetic && isWorthRepeating(&op)))
      repeated[&op] = arithmetic;
  }
}

/// Arithmetic on few elements, and masks.
bool FusionGraph::isWorthRepeating(Operation *op) const {
  if (!op->hasTrait<OpTrait::Elementwise>())
    return false;
  int64_t elements = tensorType(op->getResult(0)).getNumElements();
  return elements <= fewElements ||
         (choosesOnly(op) && countElementsRead(op) * maskExpansion <= elements);
}

/// Integer arithmetic, comparisons of integers, and selects between constants.
bool FusionGraph::choosesOnly(Operation *op) const {
  auto isConstant = [](Value value) {
    Operation *producer = value.getDefiningOp();
    while (producer && producer->getNumOperands() == 1 && isMemoryEffectFree(producer))
      producer = producer->getOperand(0).getDefiningOp();
    return producer && matchPattern(producer, m_Constant());
  };
  auto isFloat = [](Value value) { return isa<FloatType>(tensorType(value).getElementType()); };
  if (!llvm::all_of(op->getOperands(),
                    [&](Value operand) { return !isFloat(operand) || isConstant(operand); }))
    return false;
  return !isFloat(op->getResult(0)) || op->getNumOperands() > 1;
}

/// Elements that a kernel which recomputes all of `op` reads from memory.
int64_t FusionGraph::countElementsRead(Operation *op) const {
  int64_t count = 0;
  llvm::SmallSetVector<Value, 8> values(op->operand_begin(), op->operand_end());
  for (size_t i = 0; i < values.size(); ++i) {
    Operation *producer = values[i].getDefiningOp();
    if (producer && isRepeated(producer))
      values.insert(producer->operand_begin(), producer->operand_end());
    else
      count += tensorType(values[i]).getNumElements();
  }
  return count;
}

void FusionGraph::connect(Block &block) {
  Operation *lastEffect = nullptr;
  for (Operation &op : block) {
    if (isRepeated(&op))
      continue;
    nodes.push_back(&op);

    llvm::SmallSetVector<Operation *, 8> found;
    llvm::SmallPtrSet<Operation *, 16> visited;
    SmallVector<Operation *> worklist{&op};
    while (!worklist.empty()) {
      for (Value operand : worklist.pop_back_val()->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (!producer || !visited.insert(producer).second)
          continue;
        if (isRepeated(producer))
          worklist.push_back(producer);
        else
          found.insert(producer);
      }
    }
    for (Operation *producer : found) {
      producers[&op].push_back(producer);
      consumers[producer].push_back(&op);
    }

    if (getStructure(&op))
      continue;
    if (lastEffect)
      consumers[lastEffect].push_back(&op);
    lastEffect = &op;
  }
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

bool FusionGraph::escapes(Value value, const llvm::SmallPtrSetImpl<Operation *> &kernel) const {
  SmallVector<Value> worklist{value};
  llvm::SmallPtrSet<Operation *, 16> visited;
  while (!worklist.empty())
    for (Operation *user : worklist.pop_back_val().getUsers()) {
      if (isRepeated(user)) {
        if (visited.insert(user).second)
          llvm::append_range(worklist, user->getResults());
      } else if (!kernel.contains(user)) {
        return true;
      }
    }
  return false;
}

KernelBody FusionGraph::getBody(ArrayRef<Operation *> kernelNodes) const {
  KernelBody body;
  llvm::SmallPtrSet<Operation *, 16> kernel(kernelNodes.begin(), kernelNodes.end());
  llvm::SmallPtrSet<Operation *, 16> visited;
  // Each op follows its operands, so that kernels do not differ by the original position of
  // recomputed ops.
  auto visit = [&](auto &self, Operation *op) -> void {
    if (!visited.insert(op).second)
      return;
    bool isDependent = kernel.contains(op);
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (!producer || (!kernel.contains(producer) && !isRepeated(producer))) {
        body.inputs.insert(operand);
        continue;
      }
      self(self, producer);
      isDependent |= body.dependent.contains(producer);
    }
    body.ops.push_back(op);
    if (isDependent)
      body.dependent.insert(op);
  };
  for (Operation *op : kernelNodes) {
    visit(visit, op);
    for (Value result : op->getResults())
      if (escapes(result, kernel))
        body.results.push_back(result);
  }
  return body;
}
