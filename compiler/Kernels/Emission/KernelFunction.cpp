// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Graph/KernelSignature.h"
#include "compiler/Kernels/Emission/WorkChunks.h"
#include "compiler/Kernels/Kernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace weft;

/// Work-chunk counters: in each set one per thread, each on its own cache line.
static MemRefType claimsType(MLIRContext *context, int64_t sets) {
  constexpr int64_t wordsOfLine = 8;
  return MemRefType::get({sets, claimants, wordsOfLine}, IntegerType::get(context, 64));
}

static Buffer flatten(OpBuilder &builder, Location loc, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  auto flatType = MemRefType::get({type.getNumElements()}, type.getElementType());
  Value flat = memref;
  if (type != flatType)
    flat = memref::ReinterpretCastOp::create(builder, loc, flatType, memref, /*offset=*/0,
                                             ArrayRef<int64_t>{type.getNumElements()},
                                             ArrayRef<int64_t>{1});
  return {flat, llvm::to_vector(type.getShape())};
}

ValueRange weft::rootsOf(func::FuncOp kernel) {
  return kernel.getBody().front().getTerminator()->getOperands();
}

KernelFunction::KernelFunction(func::FuncOp source, const TargetInfo &target)
    : source(source), target(target), schedule(source->getAttrOfType<ScheduleAttr>(attr::schedule)),
      builder(source), loc(source.getLoc()) {
  KernelSignature signature = KernelSignature::ofTensors(source);
  // Placeholders: the sizes of scratch and counters are known after emission.
  signature.scratchBytes = 0;
  signature.counters = claimsType(builder.getContext(), 0);
  emitted = func::FuncOp::create(builder, loc, source.getName(),
                                 signature.type(builder.getContext()), ArrayRef<NamedAttribute>{});
  emitted.setPrivate();
  emitted->setAttr(attr::kernel, source->getAttr(attr::kernel));
  if (schedule)
    emitted->setAttr(attr::schedule, schedule);

  Block *entry = emitted.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  unsigned inputs = source.getNumArguments();
  for (unsigned i = 0; i < inputs; ++i)
    argumentBuffers.push_back(flatten(builder, loc, entry->getArgument(i)));
  for (unsigned i = 0; i < source.getNumResults(); ++i)
    rootBuffers.push_back(flatten(builder, loc, entry->getArgument(inputs + i)));
  scratchArgument = entry->getArgument(signature.scratchNumber());
  claimsArgument = entry->getArgument(*signature.counterNumber());
  thread = entry->getArgument(signature.threadNumber());
  threads = entry->getArgument(signature.threadNumber() + 1);
  roots = llvm::to_vector(rootsOf(source));
}

ElementEmitter KernelFunction::elementEmitter(IndexSpace &space) {
  ElementEmitter emitter(builder, space,
                         [this](DenseElementsAttr elements) { return table(elements); });
  emitter.loc = loc;
  emitter.reportTo(unfollowed);
  for (auto [argument, buffer] : llvm::zip_equal(source.getArguments(), argumentBuffers))
    emitter.setBuffer(argument, buffer);
  return emitter;
}

void KernelFunction::moveToStart() {
  builder.setInsertionPointAfterValue(rootBuffers.empty() ? scratchArgument
                                                          : rootBuffers.back().flat);
}

Value KernelFunction::stackTile(Type element, int64_t elements) {
  OpBuilder::InsertionGuard guard(builder);
  moveToStart();
  return memref::AllocaOp::create(builder, loc, MemRefType::get({elements}, element),
                                  builder.getI64IntegerAttr(64));
}

Value KernelFunction::scratch(Type element, int64_t elements) {
  int64_t bytes =
      llvm::alignTo(llvm::divideCeil(element.getIntOrFloatBitWidth(), 8) * elements, 64);
  OpBuilder::InsertionGuard guard(builder);
  moveToStart();
  Value offset = arith::ConstantIndexOp::create(builder, loc, scratchBytes);
  scratchBytes += bytes;
  return memref::ViewOp::create(builder, loc, MemRefType::get({elements}, element), scratchArgument,
                                offset, ValueRange());
}

Buffer KernelFunction::table(DenseElementsAttr elements) {
  Value &flat = tables[elements];
  if (!flat) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(emitted);
    auto type = MemRefType::get({elements.getNumElements()}, elements.getElementType());
    std::string name = (source.getName() + "_table_" + Twine(tables.size() - 1)).str();
    auto values = elements.reshape(RankedTensorType::get(type.getShape(), type.getElementType()));
    memref::GlobalOp::create(builder, loc, name, builder.getStringAttr("private"), type, values,
                             /*constant=*/true, builder.getI64IntegerAttr(64));
    moveToStart();
    flat = memref::GetGlobalOp::create(builder, loc, type, name);
  }
  return {flat, llvm::to_vector(elements.getType().getShape())};
}

InFlightDiagnostic KernelFunction::refuse() {
  refused = true;
  return source.emitError();
}

ArrayRef<int64_t> KernelFunction::bound() const {
  auto found = source->getAttrOfType<DenseI64ArrayAttr>(attr::bound);
  return found ? found.asArrayRef() : ArrayRef<int64_t>();
}

Value KernelFunction::sizeOf(int64_t symbol) {
  Value &size = symbolSizes[symbol];
  if (!size) {
    OpBuilder::InsertionGuard guard(builder);
    moveToStart();
    Value place = arith::ConstantIndexOp::create(builder, loc, symbol);
    size = memref::LoadOp::create(builder, loc, argumentBuffers.back().flat, place);
    size = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), size);
  }
  return size;
}

Value KernelFunction::rowsEnd(int64_t extent) {
  int64_t symbol = bound()[1], largest = bound()[2];
  int64_t times = bound().size() > 4 ? bound()[4] : 1;
  Value size = sizeOf(symbol);
  Value &end = ends[extent];
  if (!end) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfterValue(size);
    Value scaled = arith::MulIOp::create(
        builder, loc, size, arith::ConstantIndexOp::create(builder, loc, extent * times));
    end = arith::CeilDivUIOp::create(builder, loc, scaled,
                                     arith::ConstantIndexOp::create(builder, loc, largest));
  }
  return end;
}

std::pair<Value, Value> KernelFunction::share(int64_t total) {
  Value count = arith::ConstantIndexOp::create(builder, loc, total);
  if (isSerial()) {
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value first = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, thread, zero);
    return {zero, arith::SelectOp::create(builder, loc, first, count, zero)};
  }
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value next = arith::AddIOp::create(builder, loc, thread, one);
  Value low = border(count, thread);
  return {low, border(count, next)};
}

Value KernelFunction::border(Value total, Value number) {
  Value scaled = arith::MulIOp::create(builder, loc, total, number);
  return arith::DivUIOp::create(builder, loc, scaled, threads);
}

int64_t KernelFunction::piecesOf(int64_t total, int64_t work, int64_t enough) {
  double part = double(enough) / double(std::max<int64_t>(work, 1));
  return std::max<int64_t>(1, int64_t(std::ceil(double(total) * std::min(part, 1.0))));
}

void KernelFunction::forEachPart(int64_t total, int64_t least,
                                 llvm::function_ref<void(Value, Value)> body) {
  constexpr int64_t fewestParts = 4;
  if (isSerial() || least == 0 || total < fewestParts * least) {
    auto [low, high] = share(total);
    body(low, high);
    return;
  }
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  int64_t set = claimSets++;
  emitLoop(builder, loc, zero, threads, 1, {}, [&](Value turn, ValueRange) {
    Value owner = arith::AddIOp::create(builder, loc, thread, turn);
    owner = arith::RemUIOp::create(builder, loc, owner, threads);
    emitClaims(total, least, owner, set, body);
    return SmallVector<Value>();
  });
}

void KernelFunction::forEachPiece(int64_t total, int64_t least,
                                  llvm::function_ref<void(Value)> body) {
  forEachPart(total, least, [&](Value low, Value high) {
    emitLoop(builder, loc, low, high, 1, {}, [&](Value number, ValueRange) {
      body(number);
      return SmallVector<Value>();
    });
  });
}

/// Claims chunks of `owner`'s partition until none is left. Every thread gets one failing claim;
/// the last one resets the counter to zero for the next call.
void KernelFunction::emitClaims(int64_t total, int64_t least, Value owner, int64_t set,
                                llvm::function_ref<void(Value, Value)> body) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value count = arith::ConstantIndexOp::create(builder, loc, total);
  Value next = arith::AddIOp::create(builder, loc, owner, one);
  WorkChunks share(builder, loc, border(count, owner), border(count, next), least, threads);
  Value parts = share.count();
  Value indices[] = {arith::ConstantIndexOp::create(builder, loc, set), owner, zero};
  Value single = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(1));
  auto claim = [&](OpBuilder &, Location, ValueRange) {
    Value number = memref::AtomicRMWOp::create(builder, loc, arith::AtomicRMWKind::addi, single,
                                               claimsArgument, indices);
    number = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), number);
    Value isLeft = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, number, parts);
    scf::ConditionOp::create(builder, loc, isLeft, number);
  };
  auto work = [&](OpBuilder &, Location, ValueRange numbers) {
    Value number = numbers.front();
    Value low = share.begin(number);
    body(low, share.begin(arith::AddIOp::create(builder, loc, number, one)));
    scf::YieldOp::create(builder, loc);
  };
  auto loop = scf::WhileOp::create(builder, loc, builder.getIndexType(), ValueRange(), claim, work);
  Value told = arith::SubIOp::create(builder, loc, loop.getResult(0), parts);
  told = arith::AddIOp::create(builder, loc, told, one);
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, told, threads);
  emitIf(builder, loc, isLast, [&] {
    Value none = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(0));
    memref::StoreOp::create(builder, loc, none, claimsArgument, indices);
  });
}

/// How many elements of `value` the kernel may touch: of what it gathers from or slices, no more
/// than it takes.
static int64_t countTouched(Value value) {
  int64_t all = cast<RankedTensorType>(value.getType()).getNumElements(), touched = 0;
  for (Operation *user : value.getUsers()) {
    if (isa<tensor::ExtractSliceOp>(user)) {
      touched += cast<RankedTensorType>(user->getResult(0).getType()).getNumElements();
    } else if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(user)) {
      touched += countTouched(user->getResult(0));
    } else if (auto generic = isa<tensor::ExtractOp>(user)
                                  ? dyn_cast<linalg::GenericOp>(user->getParentOp())
                                  : nullptr) {
      int64_t steps = 1;
      for (int64_t range : generic.getStaticLoopRanges())
        steps *= range;
      touched += steps;
    } else {
      return all;
    }
  }
  return std::min(touched, all);
}

void KernelFunction::setWork(int64_t flops) {
  int64_t bytes = 0;
  auto sizeOf = [](Type type) {
    return llvm::divideCeil(cast<RankedTensorType>(type).getElementTypeBitWidth(), 8);
  };
  for (BlockArgument argument : source.getArguments())
    bytes += countTouched(argument) * sizeOf(argument.getType());
  for (Type type : source.getResultTypes())
    bytes += cast<RankedTensorType>(type).getNumElements() * sizeOf(type);
  emitted->setAttr(attr::flops, builder.getI64IntegerAttr(flops));
  emitted->setAttr(attr::bytes, builder.getI64IntegerAttr(bytes));
  if (isSerial())
    emitted->setAttr(attr::serial, builder.getUnitAttr());
}

void KernelFunction::replaceSource() {
  builder.setInsertionPointToEnd(&emitted.getBody().front());
  func::ReturnOp::create(builder, loc);
  KernelSignature signature = KernelSignature::ofTensors(source);
  signature.scratchBytes = scratchBytes;
  if (claimSets > 0)
    signature.counters = claimsType(builder.getContext(), claimSets);
  else
    (void)emitted.eraseArgument(cast<BlockArgument>(claimsArgument).getArgNumber());
  FunctionType type = signature.type(builder.getContext());
  for (auto [argument, itsType] :
       llvm::zip_equal(emitted.getBody().getArguments(), type.getInputs()))
    argument.setType(itsType);
  emitted.setFunctionType(type);
  signature.mark(emitted);
  source.erase();
}

void KernelFunction::discard() {
  for (auto [elements, flat] : tables) {
    auto use = flat.getDefiningOp<memref::GetGlobalOp>();
    SymbolTable::lookupNearestSymbolFrom(emitted, use.getNameAttr())->erase();
  }
  emitted.erase();
}

SmallVector<Value> weft::emitLoop(OpBuilder &builder, Location loc, Value low, Value high,
                                  int64_t step, ValueRange carried, LoopBody body) {
  Value stride = arith::ConstantIndexOp::create(builder, loc, step);
  auto loop = scf::ForOp::create(builder, loc, low, high, stride, carried,
                                 [](OpBuilder &, Location, Value, ValueRange) {});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!loop.getBody()->empty() && isa<scf::YieldOp>(loop.getBody()->back()))
    loop.getBody()->back().erase();
  builder.setInsertionPointToEnd(loop.getBody());
  scf::YieldOp::create(builder, loc, next);
  return llvm::to_vector_of<Value>(loop.getResults());
}

SmallVector<Value> weft::emitLoop(OpBuilder &builder, Location loc, int64_t low, int64_t high,
                                  int64_t step, ValueRange carried, LoopBody body) {
  Value first = arith::ConstantIndexOp::create(builder, loc, low);
  if (high - low <= step)
    return high > low ? body(first, carried) : llvm::to_vector(carried);
  Value last = arith::ConstantIndexOp::create(builder, loc, high);
  return emitLoop(builder, loc, first, last, step, carried, body);
}

void weft::setFlat(ElementEmitter &point, ArrayRef<unsigned> dims, Value number) {
  OpBuilder &builder = point.builder;
  for (size_t i = dims.size(); i-- > 1;) {
    int64_t extent = point.space.extent(dims[i]);
    auto size = [&] { return arith::ConstantIndexOp::create(builder, point.loc, extent); };
    point.setDim(dims[i], arith::RemUIOp::create(builder, point.loc, number, size()));
    number = arith::DivUIOp::create(builder, point.loc, number, size());
  }
  if (!dims.empty())
    point.setDim(dims.front(), number);
}

SmallVector<Value> weft::emitLoops(ElementEmitter &point, ArrayRef<unsigned> dims,
                                   ValueRange carried,
                                   llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
  if (dims.empty())
    return body(carried);
  int64_t extent = point.space.extent(dims.front());
  return emitLoop(point.builder, point.loc, 0, extent, 1, carried,
                  [&](Value variable, ValueRange now) {
                    point.setDim(dims.front(), variable);
                    return emitLoops(point, dims.drop_front(), now, body);
                  });
}

void weft::emitLoops(ElementEmitter &point, ArrayRef<unsigned> dims,
                     llvm::function_ref<void()> body) {
  emitLoops(point, dims, {}, [&](ValueRange) {
    body();
    return SmallVector<Value>();
  });
}

Value weft::emitSplat(OpBuilder &builder, Location loc, VectorType type, double value) {
  Attribute element = builder.getFloatAttr(type.getElementType(), value);
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, element));
}

void weft::emitIf(OpBuilder &builder, Location loc, Value condition,
                  llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/bool(otherwise));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  then();
  if (!otherwise)
    return;
  builder.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

void weft::emitForCount(OpBuilder &builder, Location loc, Value count, ArrayRef<int64_t> sizes,
                        llvm::function_ref<void(int64_t)> body) {
  int64_t size = sizes.front();
  if (sizes.size() == 1)
    return body(size);
  Value limit = arith::ConstantIndexOp::create(builder, loc, size);
  Value fits = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule, count, limit);
  emitIf(
      builder, loc, fits, [&] { body(size); },
      [&] { emitForCount(builder, loc, count, sizes.drop_front(), body); });
}
