// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// weft-insert-barriers: a barrier before each call that depends on another thread's memory accesses
// since the last one. In straight-line code, placing barriers as late as possible gives the fewest.
#include "compiler/Lowering/Entries/EntryIR.h"
#include "compiler/Lowering/Passes.h"

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
struct Access {
  bool serial = false;
  SmallVector<MemoryRange> reads, writes;
};

struct InsertBarriers : weft::impl::InsertBarriersBase<InsertBarriers> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (func::FuncOp entry : EntryIR::find(getOperation()))
      insertBarriers(entry, symbols);
  }

  void insertBarriers(func::FuncOp entry, SymbolTable &symbols);
};

} // namespace

static MemoryRange rangeOf(Value buffer) {
  int64_t size = byteSize(cast<MemRefType>(buffer.getType()));
  int64_t offset = 0;
  int64_t slice = 0;
  Value root = buffer;
  while (Operation *op = root.getDefiningOp()) {
    if (auto bytes = dyn_cast<UnrealizedConversionCastOp>(op)) {
      // Elements after the end of an advanced operand are not read: the range ends with it.
      root = bytes.getOperand(0);
      size = byteSize(cast<MemRefType>(root.getType())) - offset;
      continue;
    }
    auto view = dyn_cast<memref::ViewOp>(op);
    if (!view)
      break;
    root = view.getSource();
    if (std::optional<int64_t> constant = getConstantIntValue(view.getByteShift())) {
      offset += *constant;
      continue;
    }
    // A view of this thread's slice of scratch: the call as a whole accesses all slices.
    slice = size;
    size = byteSize(cast<MemRefType>(root.getType()));
    offset = 0;
  }
  return {root, offset, offset + size, slice};
}

static Access accessOf(func::CallOp call, func::FuncOp callee) {
  Access access;
  CallOperands operands = operandsOf(call, callee);
  access.serial = isSerial(callee);
  for (Value input : operands.inputs)
    access.reads.push_back(rangeOf(input));
  for (Value output : operands.outputs)
    access.writes.push_back(rangeOf(output));
  if (operands.scratch)
    access.writes.push_back(rangeOf(operands.scratch));
  if (operands.claims)
    access.writes.push_back(rangeOf(operands.claims));
  return access;
}

/// The status in the call's context; it has no buffer in the IR.
static MemoryRange statusRange() { return {Value(), 0, 1}; }

static bool anyOverlap(ArrayRef<MemoryRange> some, ArrayRef<MemoryRange> others) {
  return llvm::any_of(some, [&](const MemoryRange &range) {
    return llvm::any_of(others, [&](const MemoryRange &other) { return range.overlaps(other); });
  });
}

static bool mustWait(const Access &earlier, const Access &later) {
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

/// Ops after a failed assert have no visible effects and no out-of-bounds accesses, so one check of
/// the status serves all asserts, before a fallback and at the end. Between stages the caller waits
/// for all threads and checks the status.
void InsertBarriers::insertBarriers(func::FuncOp entry, SymbolTable &symbols) {
  SmallVector<Access> pending; // since the last barrier
  bool isOpen = false;         // an assert or fallback has run since the status was last checked
  bool isAlone = false;        // only thread 0 runs the current stage
  auto insert = [&](Operation *before, StringRef name, StringRef service) {
    OpBuilder builder(before);
    func::CallOp::create(builder, before->getLoc(),
                         declareService(getOperation(), symbols, name, service));
    pending.clear();
    ++barriers;
  };
  auto decide = [&](Operation *before) {
    insert(before, verdictName, "verdict");
    isOpen = false;
    // The next assert must not write the status before all threads have read it.
    pending.push_back({/*serial=*/isAlone, {statusRange()}, {}});
  };
  auto beginStage = [&](Operation *before) {
    insert(before, stageName, "stage");
    isOpen = false;
    isAlone = !isAlone;
  };
  bool isBehindFallback = false;
  for (func::CallOp call : llvm::make_early_inc_range(entry.getOps<func::CallOp>())) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    StringRef service = serviceOf(callee);
    if (service == "barrier") {
      pending.clear();
      continue;
    }
    bool isFallback = service == "fallback";
    if (isAlone ? !isSerial(callee) : isFallback)
      beginStage(call);
    else if (isBehindFallback || (isFallback && isOpen))
      decide(call);
    isBehindFallback = isFallback;
    Access access = accessOf(call, callee);
    bool givesVerdict = isFallback || service == "assert";
    if (givesVerdict)
      access.writes.push_back(statusRange());
    if (llvm::any_of(pending, [&](const Access &earlier) { return mustWait(earlier, access); }))
      insert(call, barrierName, "barrier");
    pending.push_back(std::move(access));
    isOpen |= givesVerdict;
  }
  if (isOpen)
    decide(entry.getBody().front().getTerminator());
}
