// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-batch-steps: contractions in the body of a scan that depend on no state are
// computed for all steps at once, before the scan, which reads their results as a sequence.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/OpStructure.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"

namespace weft {
#define GEN_PASS_DEF_BATCHSTEPS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

/// One scan whose body is taken apart. What is computed before it has the steps as its first dim.
class StepBatcher {
public:
  explicit StepBatcher(ScanOp scan) : scan(scan), builder(scan), length(scan.getLength()) {}

  /// Returns the number of contractions that leave the scan.
  int64_t run();

private:
  void findStateless();
  bool isBatchable(Operation *op) const;
  void chooseMoved();
  void move(Operation *op);
  void passAsSequence(OpResult value);

  /// Whether it is another at each step, but depends on no state.
  bool differs(Value value) const { return ofSteps.contains(value); }
  bool isConstant(Value value) const { return invariant.contains(value); }

  Value ahead(Value value);
  Value repeated(Value value);
  RankedTensorType batched(Type type) const {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape{length};
    llvm::append_range(shape, tensor.getShape());
    return RankedTensorType::get(shape, tensor.getElementType());
  }

  ScanOp scan;
  OpBuilder builder;
  int64_t length;
  llvm::DenseSet<Value> invariant, ofSteps;
  llvm::SetVector<Operation *> moved;
  IRMapping outside; ///< what is computed before the scan
};

} // namespace

int64_t StepBatcher::run() {
  findStateless();
  chooseMoved();
  if (moved.empty())
    return 0;
  SmallVector<Operation *> ordered;
  for (Operation &op : scan.getStep())
    if (moved.contains(&op))
      ordered.push_back(&op);
  for (Operation *op : ordered)
    move(op);
  for (Operation *op : ordered)
    passAsSequence(op->getResult(0));
  int64_t products = llvm::count_if(ordered, llvm::IsaPred<DotGeneralOp>);
  for (Operation *op : llvm::reverse(ordered))
    if (op->use_empty())
      op->erase();
  return products;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

void StepBatcher::findStateless() {
  ArrayRef<BlockArgument> arguments = scan.getStep().getArguments();
  arguments = arguments.drop_front(scan.getInits().size());
  size_t read = scan.getSequences().size();
  ofSteps.insert_range(arguments.take_front(read));
  for (auto [argument, operand] :
       llvm::zip_equal(arguments.drop_front(read), scan.getInvariants())) {
    invariant.insert(argument);
    outside.map(argument, operand);
  }
  for (auto [argument, sequence] : llvm::zip(arguments, scan.getSequences()))
    outside.map(argument, sequence);
  for (Operation &op : scan.getStep().without_terminator()) {
    if (llvm::all_of(op.getOperands(), [&](Value value) { return isConstant(value); }))
      invariant.insert_range(op.getResults());
    else if (isBatchable(&op))
      ofSteps.insert_range(op.getResults());
  }
}

/// Whether the op on all steps is one op of the same kind.
bool StepBatcher::isBatchable(Operation *op) const {
  auto isStateless = [&](Value value) { return differs(value) || isConstant(value); };
  if (op->getNumResults() != 1 || !llvm::all_of(op->getOperands(), isStateless) ||
      layoutOf(tensorType(op->getResult(0))) || op->hasAttr(attr::stopsGradient) ||
      op->hasAttr(attr::subgradient) || op->hasAttr(attr::recompute))
    return false;
  if (auto stackable = dyn_cast<StackableOpInterface>(op))
    return stackable.isStackable() && differs(op->getOperand(0)) &&
           llvm::all_of(op->getOperands().drop_front(), [&](Value v) { return isConstant(v); });
  return isPointwise(op);
}

/// Contractions, what they read, and the elementwise ops that alone read what is moved: they are
/// computed with it, and are no further sequence.
void StepBatcher::chooseMoved() {
  SmallVector<Value> pending;
  for (auto dot : scan.getStep().getOps<DotGeneralOp>())
    if (differs(dot))
      pending.push_back(dot);
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (op && differs(value) && moved.insert(op))
      llvm::append_range(pending, op->getOperands());
  }
  auto joins = [&](Operation &op) {
    return isPointwise(&op) && differs(op.getResult(0)) &&
           llvm::all_of(op.getOperands(), [&](Value operand) {
             auto isThis = [&](Operation *user) { return user == &op; };
             return isConstant(operand) || (moved.contains(operand.getDefiningOp()) &&
                                            llvm::all_of(operand.getUsers(), isThis));
           });
  };
  for (Operation &op : scan.getStep().without_terminator())
    if (!moved.empty() && !moved.contains(&op) && op.getNumResults() == 1 && joins(op))
      moved.insert(&op);
}

//===----------------------------------------------------------------------===//
// Ops on all steps
//===----------------------------------------------------------------------===//

/// What `value` is before the scan; what all steps compute alike is computed there once.
Value StepBatcher::ahead(Value value) {
  if (Value known = outside.lookupOrNull(value))
    return known;
  for (Value operand : value.getDefiningOp()->getOperands())
    ahead(operand);
  builder.clone(*value.getDefiningOp(), outside);
  return outside.lookup(value);
}

/// `value` for all steps, repeated if it is the same in all of them.
Value StepBatcher::repeated(Value value) {
  Value once = ahead(value);
  if (differs(value))
    return once;
  RankedTensorType type = batched(value.getType());
  if (auto constant = once.getDefiningOp<ConstantOp>())
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return ConstantOp::create(builder, value.getLoc(), splat.resizeSplat(type));
  auto dims = llvm::to_vector(llvm::seq<int64_t>(1, type.getRank()));
  return BroadcastInDimOp::create(builder, value.getLoc(), type, once, dims);
}

void StepBatcher::move(Operation *op) {
  RankedTensorType type = batched(op->getResult(0).getType());
  if (auto stackable = dyn_cast<StackableOpInterface>(op)) {
    Value first = ahead(op->getOperand(0));
    auto rest = llvm::map_to_vector(op->getOperands().drop_front(),
                                    [&](Value operand) { return ahead(operand); });
    outside.map(op->getResult(0), stackable.stacked(builder, type, first, rest));
    return;
  }
  auto operands =
      llvm::map_to_vector(op->getOperands(), [&](Value operand) { return repeated(operand); });
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  copy->getResult(0).setType(type);
  outside.map(op->getResult(0), copy->getResult(0));
}

/// The scan reads `value`, if anything that stays needs it, from a sequence.
void StepBatcher::passAsSequence(OpResult value) {
  auto stays = [&](OpOperand &use) { return !moved.contains(use.getOwner()); };
  if (llvm::none_of(value.getUses(), stays))
    return;
  unsigned place = scan.getInits().size() + scan.getSequences().size();
  BlockArgument element = scan.getStep().insertArgument(place, value.getType(), value.getLoc());
  scan.getSequencesMutable().append(outside.lookup(value));
  value.replaceUsesWithIf(element, stays);
}

namespace {

struct BatchSteps : weft::impl::BatchStepsBase<BatchSteps> {
  void runOnOperation() override {
    getOperation().walk([&](ScanOp scan) { numBatched += StepBatcher(scan).run(); });
  }
};

} // namespace
