// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cuts a backward into segments that run one after the other, so that whoever waits for the first
// gradients has them before the rest is computed. An op belongs to the first segment that needs it,
// or that gives the gradient of an input that it reads: the receiver of that gradient may change
// the input, as an optimizer that steps within the backward does. A later segment is given the
// results of earlier ones that it reads as `carried` arguments.
#include "compiler/Autodiff/Passes.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/EntryRole.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringMap.h"

namespace weft {
#define GEN_PASS_DEF_SEGMENTBACKWARD
#include "compiler/Autodiff/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

class Segments {
public:
  /// `groups` are the segments of the results of `entry`, and `wrt` the numbers of the inputs whose
  /// gradients these results are.
  Segments(func::FuncOp entry, ArrayRef<int64_t> groups, ArrayRef<int64_t> wrt)
      : entry(entry), body(entry.getBody().front()), groups(groups),
        last(*llvm::max_element(groups)) {
    llvm::StringMap<int64_t> giving;
    for (auto [number, group] : llvm::zip(wrt, groups))
      giving[("input " + Twine(number)).str()] = group;
    for (Operation &op : llvm::reverse(body.without_terminator())) {
      int64_t &segment = segments[&op] = last; // also for an op that is run for its effect alone
      for (Value result : op.getResults())
        for (OpOperand &use : result.getUses())
          segment = std::min(segment, segmentOf(use));
      for (Value operand : op.getOperands())
        if (auto argument = dyn_cast<BlockArgument>(operand))
          if (auto name = entry.getArgAttrOfType<StringAttr>(argument.getArgNumber(), attr::name))
            if (auto found = giving.find(name.getValue()); found != giving.end())
              segment = std::min(segment, found->second);
    }
    // All segments pass the carried values in this order.
    for (int64_t segment : llvm::seq(last + 1))
      for (Operation &op : body.without_terminator())
        if (segments[&op] == segment && !isFree(op))
          for (Value result : op.getResults())
            if (llvm::any_of(result.getUses(),
                             [&](OpOperand &use) { return segmentOf(use) > segment; }))
              carried.push_back(result);
  }

  func::FuncOp make(OpBuilder &builder, int64_t segment) {
    func::FuncOp function =
        createEntry(builder, entry.getLoc(), EntryRole::backward, builder.getFunctionType({}, {}));
    Block &block = *function.addEntryBlock();
    IRMapping map;
    SmallVector<Attribute> names;
    auto add = [&](Value value, Attribute name) {
      map.map(value, block.addArgument(value.getType(), value.getLoc()));
      names.push_back(name);
    };
    for (BlockArgument argument : body.getArguments())
      if (isReadIn(argument, segment))
        add(argument, entry.getArgAttr(argument.getArgNumber(), attr::name));
    for (auto [number, value] : llvm::enumerate(carried))
      if (segments[value.getDefiningOp()] < segment && isReadIn(value, segment))
        add(value, builder.getStringAttr("carried " + Twine(number)));
    OpBuilder inside = OpBuilder::atBlockEnd(&block);
    for (Operation &op : body.without_terminator())
      if (segments[&op] == segment || (isFree(op) && isReadIn(op.getResult(0), segment)))
        inside.clone(op, map);
    SmallVector<Value> results;
    for (auto [value, group] : llvm::zip_equal(body.getTerminator()->getOperands(), groups))
      if (group == segment)
        results.push_back(map.lookup(value));
    for (Value value : carried)
      if (segments[value.getDefiningOp()] == segment)
        results.push_back(map.lookup(value));
    func::ReturnOp::create(inside, entry.getLoc(), results);
    function.setFunctionType(
        builder.getFunctionType(block.getArgumentTypes(), TypeRange(ValueRange(results))));
    for (auto [number, name] : llvm::enumerate(names)) {
      function.setArgAttr(number, attr::name, name);
      function.setArgAttr(number, attr::kind, builder.getStringAttr("input"));
    }
    return function;
  }

private:
  /// Whether the op has no operands. Each segment then computes it for itself.
  static bool isFree(Operation &op) {
    return op.getNumOperands() == 0 && op.getNumResults() == 1 && isPure(&op);
  }

  int64_t segmentOf(OpOperand &use) const {
    Operation *user = use.getOwner();
    return user == body.getTerminator() ? groups[use.getOperandNumber()] : segments.lookup(user);
  }

  bool isReadIn(Value value, int64_t segment) const {
    return llvm::any_of(value.getUses(), [&](OpOperand &use) { return segmentOf(use) == segment; });
  }

  func::FuncOp entry;
  Block &body;
  ArrayRef<int64_t> groups;
  int64_t last;
  llvm::DenseMap<Operation *, int64_t> segments;
  SmallVector<Value> carried;
};

struct SegmentBackward : weft::impl::SegmentBackwardBase<SegmentBackward> {
  using SegmentBackwardBase::SegmentBackwardBase;

  void runOnOperation() override {
    func::FuncOp entry = entryOf(getOperation(), EntryRole::main);
    if (!entry || entry.getNumResults() != groups.size() || groups.empty() ||
        (!wrt.empty() && wrt.size() != groups.size())) {
      getOperation().emitError() << "expected a @main of " << groups.size() << " results";
      return signalPassFailure();
    }
    OpBuilder builder(entry);
    func::FuncOp kept = Segments(entry, groups, wrt).make(builder, segment);
    entry.erase();
    makeEntry(kept, EntryRole::main);
  }
};

} // namespace
