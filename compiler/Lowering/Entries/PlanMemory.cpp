// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// weft-plan-memory: an entry's buffers become parts of one arena.
#include "compiler/Lowering/Entries/EntryIR.h"
#include "compiler/Lowering/Entries/ThreadLocalPlacement.h"
#include "compiler/Lowering/Passes.h"
#include "compiler/Target/TargetInfo.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace weft {
#define GEN_PASS_DEF_PLANMEMORY
#include "compiler/Lowering/Passes.h.inc"
} // namespace weft

/// The first and the last number of an op and what is in it, in program order.
using Steps = DenseMap<Operation *, std::pair<int64_t, int64_t>>;

static void numberSteps(Block &block, Steps &steps, int64_t &next) {
  for (Operation &op : block) {
    int64_t first = next++;
    if (auto loop = dyn_cast<scf::ForOp>(op))
      numberSteps(*loop.getBody(), steps, next);
    steps[&op] = {first, next - 1};
  }
}

/// Extends `lifetime` by every call that uses `value`, also through views. `scope`: the block of
/// the buffer. What a loop in it uses is alive in all of its steps.
static void addUses(Value value, Block *scope, const Steps &steps, Lifetime &lifetime) {
  for (Operation *user : value.getUsers()) {
    auto [first, last] = steps.lookup(scope->findAncestorOpInBlock(*user));
    if (isa<memref::ViewOp, UnrealizedConversionCastOp, arith::SelectOp>(user)) {
      addUses(user->getResult(0), scope, steps, lifetime);
      continue;
    }
    lifetime.first = std::min(lifetime.first, first);
    lifetime.last = std::max(lifetime.last, last);
  }
}

namespace {
struct PlanMemory : weft::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    for (func::FuncOp entry : entriesOf(getOperation()))
      if (!entry->hasAttr(attr::arenaBytes) && failed(plan(entry)))
        return signalPassFailure();
  }

  LogicalResult plan(func::FuncOp entry);
};
} // namespace

LogicalResult PlanMemory::plan(func::FuncOp entry) {
  Block &block = entry.getBody().front();
  Steps steps;
  int64_t end = 0;
  numberSteps(block, steps, end);
  SmallVector<memref::AllocOp> buffers, persistent;
  entry.walk([&](memref::AllocOp buffer) {
    (buffer->hasAttr(attr::persistent) ? persistent : buffers).push_back(buffer);
  });
  SmallVector<Lifetime> lifetimes;
  for (memref::AllocOp buffer : buffers) {
    Lifetime lifetime{byteSize(buffer.getType()), std::numeric_limits<int64_t>::max(), -1};
    addUses(buffer, buffer->getBlock(), steps, lifetime);
    if (lifetime.last < 0) // unused: never live
      lifetime.first = lifetime.last = steps.lookup(buffer).first, lifetime.bytes = 0;
    lifetimes.push_back(lifetime);
  }
  MemoryPlan plan = planMemory(lifetimes);
  auto threads = getOperation()->getAttrOfType<IntegerAttr>(attr::threads);
  placeThreadLocally(lifetimes, plan, threads ? threads.getInt() : TargetInfo::defaultThreads);
  int64_t bound = livenessBound(lifetimes);
  // Persistent buffers share memory with nothing.
  for (memref::AllocOp buffer : persistent) {
    plan.bytes = llvm::alignTo(plan.bytes, 64);
    plan.offsets.push_back(plan.bytes);
    plan.bytes += byteSize(buffer.getType());
    bound += byteSize(buffer.getType());
    buffers.push_back(buffer);
  }

  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  auto arenaType = MemRefType::get({plan.bytes}, builder.getI8Type());
  unsigned position = entry.getNumArguments() - 2;
  if (failed(entry.insertArgument(position, arenaType, {}, entry.getLoc())))
    return failure();
  entry->setAttr(attr::arenaBytes, builder.getI64IntegerAttr(plan.bytes));
  entry->setAttr(attr::livenessBound, builder.getI64IntegerAttr(bound));
  Value arena = entry.getArgument(position);
  for (auto [buffer, offset] : llvm::zip_equal(buffers, plan.offsets)) {
    builder.setInsertionPoint(buffer);
    Value start = arith::ConstantIndexOp::create(builder, buffer.getLoc(), offset);
    Value view = memref::ViewOp::create(builder, buffer.getLoc(), buffer.getType(), arena, start,
                                        ValueRange());
    buffer.replaceAllUsesWith(view);
    buffer.erase();
  }
  arenaBytes += plan.bytes;
  boundBytes += bound;
  return success();
}
