// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cuts a differentiated function in two. Every value that the backward may read can either be
// saved, which costs its bytes, or be computed again from other values that the backward has, which
// costs time. In a network with an edge from the source to each op, whose capacity is the time, and
// an edge from each op to its value, whose capacity is the bytes, the best choice is a minimal cut.
#include "compiler/Autodiff/MinCut.h"
#include "compiler/Autodiff/Passes.h"
#include "compiler/Autodiff/RecomputeCost.h"
#include "compiler/Autodiff/SavedLayouts.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/ComparedValues.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/EntryRole.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace weft {
#define GEN_PASS_DEF_PARTITION
#include "compiler/Autodiff/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

// `neverSaved` is the capacity of saving a checkpointed value. The others are factors of the cost
// of recomputing: with `nothingAgain` nothing is computed again, and a memory budget is met by one
// between `dearest` and `cheapest`.
static constexpr int64_t neverSaved = MinCut::infinite >> 8;
static constexpr double nothingAgain = 1 << 20, dearest = 256, cheapest = 1.0 / 4096;

namespace {

class JointGraph {
public:
  JointGraph(func::FuncOp entry, unsigned inputs, unsigned results)
      : entry(entry), body(entry.getBody().front()), inputs(inputs), results(results),
        layouts(body) {
    for (BlockArgument argument : body.getArguments().drop_front(inputs))
      dependent.insert(argument);
    for (Operation &op : body.without_terminator())
      if (llvm::any_of(op.getOperands(), [&](Value v) { return dependent.contains(v); }))
        for (Value result : op.getResults())
          dependent.insert(result);
    markForward();
    markOfStatistics();
    markCompared();
  }

  bool isDependent(Value value) const { return dependent.contains(value); }
  bool isDependent(Operation *op) const {
    return op->getNumResults() > 0 && isDependent(op->getResult(0));
  }

  /// Chooses what is saved and what the backward computes again.
  void cut() {
    do
      cut([](Value value) { return costOfSaving(value); }, 1.0);
    while (breakChains());
  }

  /// Cuts so that at most `share` of the bytes are saved that are saved if nothing is computed
  /// again, or as few as possible. As recomputing becomes cheaper step by step, the bytes of a
  /// minimal cut never grow, so that a smaller share never saves more.
  void cutWithin(double share) {
    auto bytes = [&](Value value) { return isGiven(value) ? 0 : bytesOf(value); };
    cut(bytes, nothingAgain);
    double most = share * savedBytes();
    for (double price = dearest; savedBytes() > most; price /= 2) {
      bool last = price < cheapest;
      cut(bytes, last ? 0 : price);
      if (last)
        return;
    }
  }

  /// Saves nothing but these results, as far as that is possible, and makes no copies of arguments.
  void cutAt(ArrayRef<int64_t> given) {
    copiesArguments = false;
    ofStatistics.clear();
    toSave.clear();
    ofExtrema.clear();
    foundAgain.clear();
    llvm::DenseSet<Value> there;
    for (int64_t number : given)
      there.insert(body.getTerminator()->getOperand(number));
    cut([&](Value value) { return there.contains(value) ? 0 : MinCut::infinite; }, 1.0);
  }

  int64_t savedBytes() const {
    int64_t bytes = 0;
    for (Value value : savedAlone())
      bytes += bytesOf(value);
    return bytes;
  }

  func::FuncOp makeForward(OpBuilder &builder) {
    auto clone = cast<func::FuncOp>(builder.clone(*entry, mapping));
    makeEntry(clone, EntryRole::forward);
    Block &block = clone.getBody().front();
    Operation *end = block.getTerminator();
    SmallVector<Value> returned(end->getOperands().take_front(results));
    OpBuilder atEnd(end);
    for (Value value : savedAlone())
      returned.push_back(inLayout(atEnd, mapping.lookup(value), layouts.of(value)));
    end->setOperands(returned);
    for (Operation &op : llvm::reverse(body.without_terminator()))
      if (isDependent(&op)) {
        Operation *copy = mapping.lookup(&op);
        copy->dropAllUses();
        copy->erase();
      }
    eraseDead(block);
    llvm::BitVector cotangents(block.getNumArguments());
    cotangents.set(inputs, block.getNumArguments());
    (void)clone.eraseArguments(cotangents);
    clone.setFunctionType(
        builder.getFunctionType(block.getArgumentTypes(), TypeRange(ValueRange(returned))));
    // Trained weights change with every step, so that nothing may be prepared from them.
    for (int64_t number : entry->getAttrOfType<DenseI64ArrayAttr>(attr::jointWrt).asArrayRef())
      clone.setArgAttr(number, attr::kind, builder.getStringAttr("input"));
    dropJointAttributes(clone);
    return clone;
  }

  func::FuncOp makeBackward(OpBuilder &builder) {
    func::FuncOp function =
        createEntry(builder, entry.getLoc(), EntryRole::backward, builder.getFunctionType({}, {}));
    Block &block = *function.addEntryBlock();
    IRMapping map;
    SmallVector<std::string> names;
    auto add = [&](Value value, const Twine &name) {
      map.map(value, block.addArgument(value.getType(), value.getLoc()));
      names.push_back(name.str());
    };
    Operation *end = body.getTerminator();
    for (BlockArgument argument : body.getArguments().take_front(inputs))
      add(argument, "input " + Twine(argument.getArgNumber()));
    for (auto [number, value] : llvm::enumerate(end->getOperands().take_front(results)))
      if (saved.contains(value) && !map.contains(value))
        add(value, "result " + Twine(number));
    OpBuilder inside = OpBuilder::atBlockEnd(&block);
    for (auto [number, value] : llvm::enumerate(savedAlone())) {
      add(value, "saved " + Twine(number));
      Value argument = block.getArguments().back();
      argument.setType(withLayout(tensorType(value), layouts.of(value)));
      map.map(value, inLayout(inside, argument, LayoutAttr()));
    }
    for (BlockArgument argument : body.getArguments().drop_front(inputs))
      add(argument,
          entry.getArgAttrOfType<StringAttr>(argument.getArgNumber(), attr::name).getValue());
    for (Operation &op : body.without_terminator())
      if (isDependent(&op)) {
        computeAgain(&op, inside, map);
        inside.clone(op, map);
      }
    computeAgain(end, inside, map);
    SmallVector<Value> gradients;
    for (Value gradient : end->getOperands().drop_front(results))
      gradients.push_back(map.lookup(gradient));
    func::ReturnOp::create(inside, end->getLoc(), gradients);
    eraseDead(block);
    for (unsigned number = inputs; number-- > 0;)
      if (block.getArgument(number).use_empty()) {
        block.eraseArgument(number);
        names.erase(names.begin() + number);
      }
    function.setFunctionType(
        builder.getFunctionType(block.getArgumentTypes(), TypeRange(ValueRange(gradients))));
    for (auto [number, name] : llvm::enumerate(names)) {
      function.setArgAttr(number, attr::name, builder.getStringAttr(name));
      function.setArgAttr(number, attr::kind, builder.getStringAttr("input"));
    }
    return function;
  }

  /// The saved values that are not results of the program.
  SmallVector<Value> savedAlone() const {
    auto given = body.getTerminator()->getOperands().take_front(results);
    return llvm::filter_to_vector(saved,
                                  [&](Value value) { return !llvm::is_contained(given, value); });
  }
  size_t numRecomputed() const { return recomputed.size(); }

private:
  /// Computes what `op` reads and the backward does not have yet, just before `op`, so that
  /// recomputed values live no longer than they must.
  void computeAgain(Operation *op, OpBuilder &builder, IRMapping &map) const {
    SmallVector<Operation *> pending = {op};
    while (!pending.empty()) {
      Operation *next = pending.back();
      size_t before = pending.size();
      for (Value operand : next->getOperands())
        if (Operation *producer = operand.getDefiningOp();
            producer && !map.contains(operand) &&
            (recomputed.contains(producer) || isFree(producer)))
          pending.push_back(producer);
      if (pending.size() > before)
        continue;
      pending.pop_back();
      if (next != op && !map.contains(next->getResult(0)))
        builder.clone(*next, map);
    }
  }

  /// Tensors that are recomputed one from the other, as along the residual stream of a network, are
  /// all in memory until the last has been read, which is no better than having saved them. Marks
  /// every second tensor of such a chain to be saved; false if there is no such chain.
  bool breakChains() {
    llvm::DenseSet<Value> chained; // values that depend on a tensor that is computed again
    bool found = false;
    for (Operation &op : body.without_terminator()) {
      if (!recomputed.contains(&op) || isCheckpointed(&op))
        continue;
      bool again = llvm::any_of(op.getOperands(), [&](Value v) { return chained.contains(v); });
      bool isTensor = !isView(&op) && llvm::any_of(op.getResults(), [&](Value v) {
        return isReadThroughViews(v) && isStored(v);
      });
      if (again && isTensor) {
        found |= toSave.insert(&op).second;
        continue;
      }
      if (again || isTensor)
        chained.insert(op.result_begin(), op.result_end());
    }
    return found;
  }

  /// Cuts with recomputing `price` times as expensive as RecomputeCost.h says.
  void cut(llvm::function_ref<int64_t(Value)> saving, double price) {
    ofOps.clear();
    saved.clear();
    recomputed.clear();
    MinCut network;
    llvm::DenseMap<Value, int> values;
    // An argument that PyTorch's own backward reads is free: PyTorch raises an error if it is
    // changed before the backward runs. For another argument nobody expects such an error; its
    // content may have changed by then, so that the backward needs a copy of it, which costs as
    // much as saving a value.
    auto arguments = body.getArguments().take_front(inputs);
    for (BlockArgument argument : arguments)
      if (copiesArguments && !isReadByDecomposed(argument) && !isReadThroughViews(argument))
        network.addEdge(MinCut::source, values[argument] = network.addNode(),
                        isGiven(argument) ? MinCut::infinite : saving(argument));
    for (Operation &op : body.without_terminator()) {
      if (isDependent(&op) || op.getNumResults() == 0 || isFree(&op))
        continue;
      int node = ofOps[&op] = network.addNode();
      bool again = isCheckpointed(&op);
      int64_t cost = again ? 0 : costOfRecomputing(&op);
      // An op that the forward does not need costs the same time in either half, so that
      // recomputing it is free: it has no edge from the source.
      if (foundAgain.contains(&op))
        network.addEdge(node, MinCut::sink, MinCut::infinite);
      else if (cost < 0 || toSave.contains(&op) || (!again && ofStatistics.contains(&op)))
        network.addEdge(MinCut::source, node, MinCut::infinite);
      else if (cost > 0 && forward.contains(&op))
        network.addEdge(MinCut::source, node, static_cast<int64_t>(cost * price));
      for (Value operand : op.getOperands())
        if (auto found = values.find(operand); found != values.end())
          network.addEdge(found->second, node, MinCut::infinite);
      for (Value result : op.getResults()) {
        int value = values[result] = network.addNode();
        network.addEdge(node, value, again ? neverSaved : saving(result));
        if (isReadByBackward(result) || ofExtrema.contains(result))
          network.addEdge(value, MinCut::sink, MinCut::infinite);
      }
    }
    // What is on the source's side of the cut is not available to the backward.
    std::vector<bool> missing = network.sourceSide();
    for (BlockArgument argument : arguments)
      if (auto node = values.find(argument); node != values.end() && !missing[node->second])
        saved.insert(argument);
    for (Operation &op : body.without_terminator()) {
      auto node = ofOps.find(&op);
      if (node == ofOps.end() || !missing[node->second])
        continue;
      for (Value result : op.getResults())
        if (!missing[values[result]])
          saved.insert(result);
    }
    for (auto [op, node] : ofOps)
      if (!missing[node])
        recomputed.insert(op);
  }

  static Value inLayout(OpBuilder &builder, Value value, LayoutAttr layout) {
    RankedTensorType type = tensorType(value);
    if (layoutOf(type) == layout)
      return value;
    return RelayoutOp::create(builder, value.getLoc(), withLayout(type, layout), value);
  }

  /// Whether the value is a result of the program, which the caller has in any case.
  bool isGiven(Value value) const {
    return llvm::is_contained(body.getTerminator()->getOperands().take_front(results), value);
  }

  /// Whether the op belongs to a checkpointed region, whose values the user does not want to be
  /// saved, and is read within such regions alone. A value that is read outside of them is saved
  /// like any other.
  bool isCheckpointed(Operation *op) const {
    return op->hasAttr(attr::recompute) && isPure(op) &&
           llvm::all_of(op->getUses(), [&](OpOperand &use) {
             Operation *user = use.getOwner();
             if (user == body.getTerminator())
               return use.getOperandNumber() >= results;
             return !forward.contains(user) || user->hasAttr(attr::recompute);
           });
  }

  /// Whether the op has no operands. Both halves then compute it for themselves.
  static bool isFree(Operation *op) { return op->getNumOperands() == 0 && isPure(op); }

  /// Marks the ops that the results and the effects of the program need.
  void markForward() {
    llvm::DenseSet<Value> needed;
    for (Value value : body.getTerminator()->getOperands().take_front(results))
      needed.insert(value);
    for (Operation &op : llvm::reverse(body.without_terminator())) {
      bool isNeeded = (!isPure(&op) && !isDependent(&op)) ||
                      llvm::any_of(op.getResults(), [&](Value v) { return needed.contains(v); });
      if (!isNeeded)
        continue;
      forward.insert(&op);
      needed.insert(op.operand_begin(), op.operand_end());
    }
  }

  /// Running statistics are written without an increment of their version counter: PyTorch's own
  /// derivatives read them as they are when the backward runs, but values that the forward has
  /// computed from them must not change. So no op that reads them is computed again.
  void markOfStatistics() {
    for (Operation *op : forward)
      if (auto norm = dyn_cast<BatchNormOp>(op))
        for (Value statistics : {norm.getMean(), norm.getVariance()})
          if (isa<BlockArgument>(statistics))
            for (Operation *user : statistics.getUsers())
              if (forward.contains(user))
                ofStatistics.insert(user);
  }

  /// If the backward repeats a comparison of the forward, it needs the elements that the forward
  /// compared. A derivative that asks which elements equal their extremum needs the extremum of
  /// exactly these elements: if they were computed again in another kernel, where multiplications
  /// and additions are contracted differently or sums are made in another order, none might be
  /// equal. So the elements are saved, and the backward finds their extremum again.
  void markCompared() {
    llvm::DenseSet<Operation *> met = comparedValues(body, Again::Programs);
    toSave.insert(met.begin(), met.end());
    for (auto compared : body.getOps<CmpOp>()) {
      if (compared.getPredicate() != ComparePredicate::eq)
        continue;
      Value lhs = withoutMoves(compared.getLhs()), rhs = withoutMoves(compared.getRhs());
      for (auto [elements, other] : {std::pair(lhs, rhs), std::pair(rhs, lhs)}) {
        Operation *producer = elements.getDefiningOp();
        if (!producer || !isExtremumOf(other.getDefiningOp(), elements))
          continue;
        toSave.insert(producer);
        if (forward.contains(compared))
          continue;
        ofExtrema.insert(elements);
        if (auto reduce = other.getDefiningOp<ReduceOp>();
            reduce && !isDependent(reduce.getResult()))
          markFoundAgain(reduce, compared);
      }
    }
  }

  /// Marks the extremum, the comparison with it and all that follows from that to be computed by
  /// the backward: a value of the forward that counts equal elements would count by the forward's
  /// own extremum.
  void markFoundAgain(ReduceOp extremum, CmpOp compared) {
    foundAgain.insert(extremum);
    SmallVector<Operation *> pending{compared};
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val();
      if (isDependent(op) || op == body.getTerminator() || !foundAgain.insert(op).second)
        continue;
      pending.append(op->user_begin(), op->user_end());
    }
  }

  static bool isExtremumOf(Operation *op, Value elements) {
    return op && isa<ReduceOp, ScatterOp>(op) &&
           llvm::any_of(op->getOperands(), [&](Value v) { return withoutMoves(v) == elements; });
  }

  static Value withoutMoves(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!isView(op) && !isa<GatherOp>(op))
        break;
      value = op->getOperand(0);
    }
    return value;
  }

  bool isReadByBackward(Value value) const {
    return llvm::any_of(value.getUses(), [&](OpOperand &use) {
      if (use.getOwner() == body.getTerminator())
        return use.getOperandNumber() >= results;
      return isDependent(use.getOwner());
    });
  }

  /// Whether `argument` is read by the derivative of an op that has been decomposed since.
  bool isReadByDecomposed(BlockArgument argument) const {
    auto read = entry->getAttrOfType<DenseI64ArrayAttr>(attr::jointRead);
    return read && llvm::is_contained(read.asArrayRef(), argument.getArgNumber());
  }

  /// Whether the backward, or a region that it computes again, reads `value` or a value that shares
  /// its memory in PyTorch.
  bool isReadThroughViews(Value value) const {
    auto isOfTheBackward = [&](Operation *user) {
      return user != body.getTerminator() &&
             (!forward.contains(user) || user->hasAttr(attr::recompute));
    };
    if (isReadByBackward(value) || llvm::any_of(value.getUsers(), isOfTheBackward))
      return true;
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return isView(user) && isReadThroughViews(user->getResult(0));
    });
  }

  static bool isView(Operation *op) { return op->hasTrait<SharesMemory>(); }

  static void eraseDead(Block &block) {
    SmallVector<Operation *> ops =
        llvm::to_vector(llvm::make_pointer_range(block.without_terminator()));
    for (Operation *op : llvm::reverse(ops))
      if (isOpTriviallyDead(op))
        op->erase();
  }

  static void dropJointAttributes(func::FuncOp function) {
    for (StringRef name : {attr::jointInputs, attr::jointResults, attr::jointWrt, attr::jointRead})
      function->removeAttr(name);
  }

  func::FuncOp entry;
  Block &body;
  unsigned inputs, results;
  SavedLayouts layouts;
  bool copiesArguments = true;
  llvm::DenseSet<Value> dependent; ///< the values that depend on cotangents
  llvm::DenseSet<Value> ofExtrema; ///< the values whose extrema derivatives find again
  llvm::DenseSet<Operation *> forward, recomputed, toSave, ofStatistics;
  /// Extrema that the backward computes for itself, and what follows from them.
  llvm::DenseSet<Operation *> foundAgain;
  llvm::DenseMap<Operation *, int> ofOps;
  llvm::SetVector<Value> saved;
  IRMapping mapping; ///< from @main to the forward
};

struct Partition : weft::impl::PartitionBase<Partition> {
  using PartitionBase::PartitionBase;

  void runOnOperation() override {
    func::FuncOp entry = entryOf(getOperation(), EntryRole::main);
    auto inputs = entry ? entry->getAttrOfType<IntegerAttr>(attr::jointInputs) : IntegerAttr();
    if (!inputs) {
      getOperation().emitError() << "expected a differentiated @main";
      return signalPassFailure();
    }
    auto results = entry->getAttrOfType<IntegerAttr>(attr::jointResults);
    JointGraph graph(entry, inputs.getInt(), results.getInt());
    if (!given.empty())
      graph.cutAt(given);
    else if (budget < 0)
      graph.cut();
    else
      graph.cutWithin(budget);
    OpBuilder builder(entry);
    func::FuncOp kept;
    if (half != TrainingHalf::Backward)
      kept = graph.makeForward(builder);
    if (half != TrainingHalf::Forward)
      kept = graph.makeBackward(builder);
    numSaved += graph.savedAlone().size();
    savedBytes += graph.savedBytes();
    numRecomputed += graph.numRecomputed();
    entry.erase();
    if (half != TrainingHalf::Both)
      makeEntry(kept, EntryRole::main);
  }
};

} // namespace
