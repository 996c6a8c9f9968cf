// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// weft-insert-barriers: a barrier before each call that depends on another thread's memory accesses
// since the last one. In straight-line code, placing barriers as late as possible gives the fewest.
#include "compiler/Lowering/Entries/EntryIR.h"
#include "compiler/Lowering/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace weft;

namespace weft {
#define GEN_PASS_DEF_INSERTBARRIERS
#include "compiler/Lowering/Passes.h.inc"
} // namespace weft

namespace {

/// Bytes [low, high) of one argument of the entry.
struct MemoryRange {
  Value root;
  int64_t low, high;
  /// Size of the disjoint slice of each thread; 0 if threads share the range.
  int64_t slice = 0;

  bool overlaps(const MemoryRange &other) const {
    if (root != other.root || low >= other.high || other.low >= high)
      return false;
    bool sameSlices = slice != 0 && slice == other.slice && low == other.low;
    return !sameSlices;
  }
};

/// The memory effects of a call.
struct CallEffects {
  bool serial = false;
  SmallVector<MemoryRange> reads, writes;
};

/// Walks one entry in program order.
class BarrierInserter {
public:
  BarrierInserter(func::FuncOp entry, SymbolTable &symbols) : entry(entry), symbols(symbols) {}

  /// Returns the number of barriers inserted.
  int64_t run();

private:
  void visit(Block &block);
  void visitCall(func::CallOp call);
  void visitLoop(scf::ForOp loop);
  void insert(Operation *before, StringRef name, StringRef service);
  void decide(Operation *before);
  void beginStage(Operation *before);

  func::FuncOp entry;
  SymbolTable &symbols;
  SmallVector<CallEffects> pending; ///< since the last barrier
  bool isOpen = false;  ///< an assert or fallback has run since the status was last checked
  bool isAlone = false; ///< only thread 0 runs the current stage
  bool isBehindFallback = false;
  int64_t barriers = 0;
};

struct InsertBarriers : weft::impl::InsertBarriersBase<InsertBarriers> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (func::FuncOp entry : entriesOf(getOperation()))
      barriers += BarrierInserter(entry, symbols).run();
  }
};

} // namespace

/// Whether the view is a thread's slice of a buffer; others that are not at a constant place depend
/// on the step of a loop.
static bool isThreadSlice(memref::ViewOp view) {
  auto product = view.getByteShift().getDefiningOp<arith::MulIOp>();
  auto factor = product ? dyn_cast<BlockArgument>(product.getLhs()) : BlockArgument();
  return factor && isa<func::FuncOp>(factor.getOwner()->getParentOp());
}

/// Appends where `range`, of the value `range.root`, may be in the arguments of the entry.
static void appendRanges(MemoryRange range, SmallVectorImpl<MemoryRange> &ranges) {
  auto from = [&](Value root) {
    MemoryRange moved = range;
    moved.root = root;
    appendRanges(moved, ranges);
  };
  auto takeAll = [&](Value root) {
    range.low = 0;
    range.high = byteSize(cast<MemRefType>(root.getType()));
  };
  Operation *op = range.root.getDefiningOp();
  if (!op) {
    auto argument = cast<BlockArgument>(range.root);
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop)
      return ranges.push_back(range);
    from(loop.getTiedLoopInit(argument)->get());
    return from(loop.getTiedLoopYieldedValue(argument)->get());
  }
  if (auto choice = dyn_cast<arith::SelectOp>(op)) {
    from(choice.getTrueValue());
    return from(choice.getFalseValue());
  }
  if (auto bytes = dyn_cast<UnrealizedConversionCastOp>(op)) {
    // Elements after the end of an advanced operand are not read: the range ends with it.
    range.high = std::min(range.high, byteSize(cast<MemRefType>(bytes.getOperand(0).getType())));
    return from(bytes.getOperand(0));
  }
  auto view = dyn_cast<memref::ViewOp>(op);
  if (!view)
    return ranges.push_back(range);
  if (std::optional<int64_t> constant = getConstantIntValue(view.getByteShift())) {
    range.low += *constant;
    range.high += *constant;
    return from(view.getSource());
  }
  // The call as a whole accesses all slices of scratch, and the loop as a whole all elements.
  range.slice = isThreadSlice(view) ? range.high - range.low : 0;
  takeAll(view.getSource());
  from(view.getSource());
}

static void appendRanges(Value buffer, SmallVectorImpl<MemoryRange> &ranges) {
  appendRanges(MemoryRange{buffer, 0, byteSize(cast<MemRefType>(buffer.getType()))}, ranges);
}

static CallEffects effectsOf(func::CallOp call, func::FuncOp callee) {
  CallEffects effects;
  CallOperands operands = operandsOf(call, callee);
  effects.serial = isSerial(callee);
  for (Value input : operands.inputs)
    appendRanges(input, effects.reads);
  for (Value output : operands.outputs)
    appendRanges(output, effects.writes);
  if (operands.scratch)
    appendRanges(operands.scratch, effects.writes);
  if (operands.claims)
    appendRanges(operands.claims, effects.writes);
  return effects;
}

/// The status in the call's context; it has no buffer in the IR.
static MemoryRange statusRange() { return {Value(), 0, 1}; }

static bool anyOverlap(ArrayRef<MemoryRange> some, ArrayRef<MemoryRange> others) {
  return llvm::any_of(some, [&](const MemoryRange &range) {
    return llvm::any_of(others, [&](const MemoryRange &other) { return range.overlaps(other); });
  });
}

static bool mustWait(const CallEffects &earlier, const CallEffects &later) {
  if (earlier.serial && later.serial)
    return false; // thread 0 executes in program order
  return anyOverlap(earlier.writes, later.reads) || anyOverlap(earlier.writes, later.writes) ||
         anyOverlap(earlier.reads, later.writes);
}

static func::FuncOp declareService(ModuleOp module, SymbolTable &symbols, StringRef name,
                                   StringRef service) {
  if (auto known = symbols.lookup<func::FuncOp>(name))
    return known;
  OpBuilder builder(module.getContext());
  auto function =
      func::FuncOp::create(builder, module.getLoc(), name, builder.getFunctionType({}, {}));
  function.setPrivate();
  function->setAttr(attr::service, builder.getStringAttr(service));
  symbols.insert(function);
  return function;
}

int64_t BarrierInserter::run() {
  visit(entry.getBody().front());
  if (isOpen)
    decide(entry.getBody().front().getTerminator());
  return barriers;
}

void BarrierInserter::visit(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto call = dyn_cast<func::CallOp>(op))
      visitCall(call);
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      visitLoop(loop);
  }
}

/// Ops after a failed assert have no visible effects and no out-of-bounds accesses, so one check of
/// the status serves all asserts, before a fallback and at the end. Between stages the caller waits
/// for all threads and checks the status.
void BarrierInserter::visitCall(func::CallOp call) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  StringRef service = serviceOf(callee);
  if (service == "barrier")
    return pending.clear();
  bool isFallback = service == "fallback";
  if (isAlone ? !isSerial(callee) : isFallback)
    beginStage(call);
  else if (isBehindFallback || (isFallback && isOpen))
    decide(call);
  isBehindFallback = isFallback;
  CallEffects effects = effectsOf(call, callee);
  bool givesVerdict = isFallback || service == "assert";
  if (givesVerdict)
    effects.writes.push_back(statusRange());
  if (llvm::any_of(pending, [&](const CallEffects &earlier) { return mustWait(earlier, effects); }))
    insert(call, barrierName, "barrier");
  pending.push_back(std::move(effects));
  isOpen |= givesVerdict;
}

/// A step may have to wait for what the one before it did: the body is visited again, with the
/// accesses of a step pending. Loops have no fallbacks and asserts; their stage is the team's.
void BarrierInserter::visitLoop(scf::ForOp loop) {
  if (isAlone)
    beginStage(loop);
  else if (isBehindFallback)
    decide(loop);
  isBehindFallback = false;
  visit(*loop.getBody());
  visit(*loop.getBody());
}

void BarrierInserter::insert(Operation *before, StringRef name, StringRef service) {
  OpBuilder builder(before);
  func::CallOp::create(builder, before->getLoc(),
                       declareService(entry->getParentOfType<ModuleOp>(), symbols, name, service));
  pending.clear();
  ++barriers;
}

void BarrierInserter::decide(Operation *before) {
  insert(before, verdictName, "verdict");
  isOpen = false;
  // The next assert must not write the status before all threads have read it.
  pending.push_back({/*serial=*/isAlone, {statusRange()}, {}});
}

void BarrierInserter::beginStage(Operation *before) {
  insert(before, stageName, "stage");
  isOpen = false;
  isAlone = !isAlone;
}
