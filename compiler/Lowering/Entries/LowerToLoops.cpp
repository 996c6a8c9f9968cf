// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// weft-lower-to-loops: emits every kernel and turns the entries from functions on tensors into
// straight-line calls on memrefs (see EntryIR.h). One pass, because calls and callees do not match
// between the two steps.
#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Kernels.h"
#include "compiler/Lowering/Entries/ColdWeights.h"
#include "compiler/Lowering/Entries/CrossThreadReads.h"
#include "compiler/Lowering/Entries/EntryIR.h"
#include "compiler/Lowering/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include <optional>

using namespace mlir;
using namespace weft;

namespace weft {
#define GEN_PASS_DEF_LOWERTOLOOPS
#include "compiler/Lowering/Passes.h.inc"
} // namespace weft

static MemRefType memrefOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return MemRefType::get(tensor.getShape(), tensor.getElementType());
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// A kernel that is only declared is linked in from elsewhere; it gets the signature
/// that an emitted one would have.
static void declareEmitted(func::FuncOp kernel) {
  Builder builder(kernel.getContext());
  SmallVector<Type> types;
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes()))
    types.push_back(memrefOf(type));
  auto scratch = kernel->getAttrOfType<IntegerAttr>(attr::scratchBytes);
  types.push_back(MemRefType::get({scratch ? scratch.getInt() : 0}, builder.getI8Type()));
  types.append(2, builder.getIndexType());
  kernel.setFunctionType(builder.getFunctionType(types, {}));
}

/// Takes the loops that the module has for a declared kernel.
static LogicalResult takeLoops(ModuleOp module, func::FuncOp kernel, FlatSymbolRefAttr name) {
  auto loops = module.lookupSymbol<func::FuncOp>(name.getAttr());
  if (!loops)
    return kernel.emitError("expected a function '") << name.getValue() << "' with its loops";
  return adoptLoops(kernel, loops);
}

/// Emits all kernels, and records the number of their inputs.
static LogicalResult emitKernels(ModuleOp module, const TargetInfo &target,
                                 const ScheduleOverride &given) {
  auto kernels = llvm::filter_to_vector(module.getOps<func::FuncOp>(), [](func::FuncOp function) {
    return function->hasAttr(attr::kernel);
  });
  CrossThreadReads shares(module);
  llvm::StringSet<> cold = findKernelsOfColdWeights(module, target.l3Bytes);
  for (func::FuncOp kernel : kernels) {
    if (llvm::any_of(kernel.getArgumentTypes(), llvm::IsaPred<MemRefType>))
      continue; // already emitted
    std::string name = kernel.getName().str();
    int64_t inputs = kernel.getNumArguments();
    if (shares.by(name))
      kernel->setAttr(attr::crossThreadReads, UnitAttr::get(module.getContext()));
    if (cold.contains(name))
      kernel->setAttr(attr::coldWeights, UnitAttr::get(module.getContext()));
    if (auto loops = kernel->getAttrOfType<FlatSymbolRefAttr>(attr::loops)) {
      if (failed(takeLoops(module, kernel, loops)))
        return failure();
    } else if (kernel.isExternal())
      declareEmitted(kernel);
    else if (failed(emitKernel(kernel, target, given)))
      return failure();
    auto emitted = module.lookupSymbol<func::FuncOp>(name);
    emitted->setAttr(attr::numInputs,
                     IntegerAttr::get(IntegerType::get(module.getContext(), 64), inputs));
    shares.add(emitted);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

namespace {

/// Rewrites one entry.
class EntryRewriter {
public:
  EntryRewriter(func::FuncOp entry, SymbolTable &symbols, int64_t threads)
      : entry(entry), symbols(symbols), threads(threads), builder(entry.getContext()) {}

  LogicalResult run();

private:
  LogicalResult changeSignature();
  LogicalResult rewrite(Operation *op);
  LogicalResult rewriteCall(func::CallOp call);
  LogicalResult rewriteFallback(TorchFallbackOp op);
  LogicalResult rewriteAssert(AssertOp op);
  LogicalResult rewriteAdvance(AdvanceOp op);
  void copyResults();

  /// Whether @bind computes it.
  bool isBound(BlockArgument argument) {
    auto kind = entry.getArgAttrOfType<StringAttr>(argument.getArgNumber(), attr::kind);
    return kind && kind.getValue() == "bound";
  }
  Value bufferFor(Value tensor);
  void takePlace(OpResult result, func::FuncOp kernel, ArrayRef<Value> taken);
  Value scratchFor(int64_t bytes, Location loc);
  Value claimsFor(func::FuncOp kernel);
  func::FuncOp declareService(StringRef service, TypeRange inputs, TypeRange outputs);
  SmallVector<Value> buffersOf(ValueRange tensors) {
    return llvm::map_to_vector(tensors, [&](Value tensor) { return lookUp(tensor); });
  }
  Value lookUp(Value tensor);

  func::FuncOp entry;
  SymbolTable &symbols;
  int64_t threads;
  OpBuilder builder;
  bool isBind = false;
  bool anyParallel = false, anyScratch = false;
  DenseMap<Value, Value> buffers; ///< tensor to memref
  Value noScratch;                ///< zero bytes, for kernels that need none
  memref::AllocOp claims;         ///< work-chunk counters of all kernels
  int64_t claimed = 0;            ///< bytes assigned to kernels so far
  SmallVector<std::pair<Value, Value>> copies;
};

} // namespace

LogicalResult EntryRewriter::run() {
  isBind = entry.getName() == "bind";
  Block &block = entry.getBody().front();
  auto operations = llvm::map_to_vector(block, [](Operation &op) { return &op; });
  if (failed(changeSignature()))
    return failure();
  for (Operation *op : operations)
    if (failed(rewrite(op)))
      return failure();
  for (Operation *op : llvm::reverse(operations))
    op->erase();
  builder.setInsertionPointToEnd(&block);
  copyResults();
  func::ReturnOp::create(builder, entry.getLoc());
  // The old arguments stand ahead of the new ones.
  block.eraseArguments(0, block.getNumArguments() - entry.getNumArguments());
  int64_t most = !anyParallel ? 1 : anyScratch ? threads : std::numeric_limits<int32_t>::max();
  if (claims)
    most = std::min(most, claimants);
  entry->setAttr(attr::maxThreads, builder.getI64IntegerAttr(most));
  return success();
}

/// Results become arguments. A result that is an argument or occurs twice is an alias, which the
/// caller resolves; what @bind computes needs memory of its own.
LogicalResult EntryRewriter::changeSignature() {
  Block &block = entry.getBody().front();
  auto returns = cast<func::ReturnOp>(block.getTerminator());
  Location loc = entry.getLoc();
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  auto logicalType = [&](DictionaryAttr known, Type physical) -> Attribute {
    Attribute type = known ? known.get(attr::type) : nullptr;
    return type ? type : TypeAttr::get(physical);
  };
  SmallVector<BlockArgument> arguments(block.getArguments());
  for (BlockArgument argument : arguments) {
    types.push_back(memrefOf(argument.getType()));
    NamedAttrList list(entry.getArgAttrDict(argument.getArgNumber()));
    list.set(attr::type,
             logicalType(entry.getArgAttrDict(argument.getArgNumber()), argument.getType()));
    attributes.push_back(list.getDictionary(entry.getContext()));
    buffers[argument] = block.addArgument(types.back(), argument.getLoc());
  }
  DenseMap<Value, int64_t> resultOf;
  for (auto [index, value] : llvm::enumerate(returns.getOperands())) {
    types.push_back(memrefOf(value.getType()));
    Value buffer = block.addArgument(types.back(), loc);
    NamedAttrList list;
    list.set(attr::kind, builder.getStringAttr("result"));
    list.set(attr::type, logicalType(entry.getResultAttrDict(index), value.getType()));
    auto argument = dyn_cast<BlockArgument>(value);
    bool ownMemory = !argument && !resultOf.contains(value);
    if (ownMemory)
      buffers[value] = buffer;
    else if (isBind || (argument && isBound(argument)))
      copies.push_back({buffers[value], buffer});
    else if (argument)
      list.set(attr::aliasArgument, builder.getI64IntegerAttr(argument.getArgNumber()));
    else
      list.set(attr::aliasResult, builder.getI64IntegerAttr(resultOf[value]));
    resultOf.try_emplace(value, index);
    attributes.push_back(list.getDictionary(entry.getContext()));
  }
  for (int i = 0; i < 2; ++i) {
    types.push_back(builder.getIndexType());
    attributes.push_back(builder.getDictionaryAttr({}));
    block.addArgument(builder.getIndexType(), loc);
  }
  entry.removeResAttrsAttr();
  entry.removeArgAttrsAttr();
  entry.setFunctionType(builder.getFunctionType(types, {}));
  entry.setAllArgAttrs(attributes);
  return success();
}

LogicalResult EntryRewriter::rewrite(Operation *op) {
  builder.setInsertionPoint(op);
  if (auto call = dyn_cast<func::CallOp>(op))
    return rewriteCall(call);
  if (auto fallback = dyn_cast<TorchFallbackOp>(op))
    return rewriteFallback(fallback);
  if (auto assertion = dyn_cast<AssertOp>(op))
    return rewriteAssert(assertion);
  if (auto advance = dyn_cast<AdvanceOp>(op))
    return rewriteAdvance(advance);
  if (isa<func::ReturnOp, UnrealizedConversionCastOp>(op))
    return success();
  return op->emitOpError("expected only calls, fallbacks, asserts and advances in an entry");
}

/// The tensor that owns the memory of `tensor`.
static Value uncast(Value tensor) {
  while (auto cast = tensor.getDefiningOp<UnrealizedConversionCastOp>())
    tensor = cast.getOperand(0);
  return tensor;
}

Value EntryRewriter::lookUp(Value tensor) { return buffers.lookup(uncast(tensor)); }

/// The caller's memory for a result of the entry, new memory for anything else.
Value EntryRewriter::bufferFor(Value tensor) {
  Value &buffer = buffers[tensor];
  if (!buffer)
    buffer = memref::AllocOp::create(builder, tensor.getLoc(), memrefOf(tensor.getType()));
  return buffer;
}

/// Whether no op after `last`, in its block, reads the memory of `tensor`.
static bool isLastReader(Operation *last, Value tensor) {
  return llvm::all_of(tensor.getUsers(), [&](Operation *user) {
    if (isa<UnrealizedConversionCastOp, AdvanceOp>(user))
      return isLastReader(last, user->getResult(0));
    return user == last || user->isBeforeInBlock(last);
  });
}

/// Gives `result` the buffer of an operand that is dead after this call, if the kernel allows it.
/// Buffers of the caller are never reused. `taken`: the call's buffers so far, operands first.
void EntryRewriter::takePlace(OpResult result, func::FuncOp kernel, ArrayRef<Value> taken) {
  auto call = cast<func::CallOp>(result.getOwner());
  unsigned argument = call.getNumOperands() + result.getResultNumber();
  auto places = kernel.getArgAttrOfType<DenseI64ArrayAttr>(argument, attr::inPlace);
  if (!places || buffers.contains(result))
    return;
  for (int64_t place : places.asArrayRef()) {
    Value tensor = uncast(call.getOperand(place)), buffer = taken[place];
    // An advanced operand does not own its memory.
    auto isHere = [&](Value operand) { return ownerOf(operand) == tensor; };
    if (isa<BlockArgument>(buffer) || llvm::count_if(call.getOperands(), isHere) != 1 ||
        buffer.getType() != memrefOf(result.getType()) || llvm::count(taken, buffer) != 1 ||
        !isLastReader(call, tensor))
      continue;
    buffers[result] = buffer;
    return;
  }
}

/// This thread's slice of a buffer with one slice per thread.
Value EntryRewriter::scratchFor(int64_t bytes, Location loc) {
  auto type = MemRefType::get({bytes}, builder.getI8Type());
  if (bytes == 0) {
    if (!noScratch) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&entry.getBody().front());
      noScratch = memref::AllocOp::create(builder, entry.getLoc(), type);
    }
    return noScratch;
  }
  anyScratch = true;
  int64_t slice = llvm::alignTo(bytes, 64);
  Value all = memref::AllocOp::create(builder, loc,
                                      MemRefType::get({threads * slice}, builder.getI8Type()));
  Value thread = entry.getBody().front().getArguments().drop_back().back();
  Value size = arith::ConstantIndexOp::create(builder, loc, slice);
  Value offset = arith::MulIOp::create(builder, loc, thread, size);
  return memref::ViewOp::create(builder, loc, type, all, offset, ValueRange());
}

LogicalResult EntryRewriter::rewriteCall(func::CallOp call) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!callee || !callee->hasAttr(attr::kernel))
    return call.emitOpError("expected a call to a kernel");
  SmallVector<Value> operands = buffersOf(call.getOperands());
  for (OpResult result : call.getResults()) {
    takePlace(result, callee, operands);
    operands.push_back(bufferFor(result));
  }
  auto bytes = callee->getAttrOfType<IntegerAttr>(attr::scratchBytes);
  operands.push_back(scratchFor(bytes ? bytes.getInt() : 0, call.getLoc()));
  if (callee->hasAttr(attr::claims))
    operands.push_back(claimsFor(callee));
  llvm::append_range(operands, entry.getBody().front().getArguments().take_back(2));
  anyParallel |= !isSerial(callee);
  func::CallOp::create(builder, call.getLoc(), callee, operands);
  return success();
}

/// Assigns sets of counters round-robin: a set is reused only after a barrier, which is inserted if
/// there is none.
Value EntryRewriter::claimsFor(func::FuncOp kernel) {
  constexpr int64_t fewestSets = 16;
  auto type = cast<MemRefType>(*std::prev(kernel.getArgumentTypes().end(), 3));
  int64_t bytes = byteSize(type), setBytes = bytes / type.getDimSize(0);
  int64_t all = std::max(fewestSets * setBytes, bytes);
  if (!claims) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&entry.getBody().front());
    claims = memref::AllocOp::create(builder, entry.getLoc(),
                                     MemRefType::get({all}, builder.getI8Type()));
    claims->setAttr(attr::persistent, builder.getUnitAttr());
  }
  all = std::max(all, byteSize(claims.getType()));
  claims.getResult().setType(MemRefType::get({all}, builder.getI8Type()));
  if (claimed + bytes > all)
    claimed = 0;
  Value offset = arith::ConstantIndexOp::create(builder, kernel.getLoc(), claimed);
  claimed += bytes;
  return memref::ViewOp::create(builder, kernel.getLoc(), type, claims, offset, ValueRange());
}

func::FuncOp EntryRewriter::declareService(StringRef service, TypeRange inputs, TypeRange outputs) {
  OpBuilder::InsertionGuard guard(builder);
  builder.clearInsertionPoint();
  auto types = llvm::to_vector(
      llvm::concat<const Type>(SmallVector<Type>(inputs), SmallVector<Type>(outputs)));
  auto function = func::FuncOp::create(builder, entry.getLoc(), ("weft_" + service).str(),
                                       builder.getFunctionType(types, {}));
  function.setPrivate();
  function->setAttr(attr::service, builder.getStringAttr(service));
  function->setAttr(attr::numInputs, builder.getI64IntegerAttr(inputs.size()));
  symbols.insert(function); // makes the name unique
  return function;
}

LogicalResult EntryRewriter::rewriteFallback(TorchFallbackOp op) {
  SmallVector<Value> inputs = buffersOf(op->getOperands()), outputs;
  for (Value result : op->getResults())
    outputs.push_back(bufferFor(result));
  auto service =
      declareService("fallback", ValueRange(inputs).getTypes(), ValueRange(outputs).getTypes());
  service->setAttr(attr::target, op.getTargetAttr());
  service->setAttr(attr::arguments, op.getArgumentsAttr());
  // Storage types do not distinguish bool and u8.
  unsigned number = 0;
  auto keepTypes = [&](TypeRange physical, StringRef dtypes) {
    auto elements = op->getAttrOfType<ArrayAttr>(dtypes);
    for (auto [index, type] : llvm::enumerate(physical)) {
      auto tensor = cast<RankedTensorType>(type);
      Type element =
          elements ? cast<TypeAttr>(elements[index]).getValue() : tensor.getElementType();
      service.setArgAttr(number++, attr::type,
                         TypeAttr::get(RankedTensorType::get(tensor.getShape(), element)));
    }
  };
  keepTypes(op->getOperandTypes(), "operand_dtypes");
  keepTypes(op->getResultTypes(), "result_dtypes");
  llvm::append_range(inputs, outputs);
  func::CallOp::create(builder, op.getLoc(), service, inputs);
  return success();
}

LogicalResult EntryRewriter::rewriteAssert(AssertOp op) {
  Value condition = lookUp(op.getCondition());
  auto service = declareService("assert", condition.getType(), {});
  service->setAttr(attr::message, op.getMessageAttr());
  func::CallOp::create(builder, op.getLoc(), service, condition);
  return success();
}

LogicalResult EntryRewriter::rewriteAdvance(AdvanceOp op) {
  Location loc = op.getLoc();
  Value buffer = lookUp(op.getOperand());
  auto type = cast<MemRefType>(buffer.getType());
  auto bytesType = MemRefType::get({byteSize(type)}, builder.getI8Type());
  auto bytes = UnrealizedConversionCastOp::create(builder, loc, bytesType, buffer);
  int64_t elementBytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  Value start = arith::ConstantIndexOp::create(builder, loc, op.getOffset() * elementBytes);
  buffers[op] = memref::ViewOp::create(builder, loc, type, bytes.getResult(0), start, ValueRange());
  return success();
}

void EntryRewriter::copyResults() {
  for (auto [from, to] : copies) {
    auto service = declareService("copy", from.getType(), to.getType());
    func::CallOp::create(builder, entry.getLoc(), service, ValueRange{from, to});
  }
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {

struct LowerToLoops : weft::impl::LowerToLoopsBase<LowerToLoops> {
  LowerToLoops() = default;
  LowerToLoops(LowerToLoopsOptions options) : LowerToLoopsBase(std::move(options)) {}
  LowerToLoops(TargetInfo target, StringRef schedule) : target(std::move(target)) {
    this->schedule = schedule.str();
  }
  LowerToLoops(const LowerToLoops &other)
      : LowerToLoopsBase(other), target(other.target), given(other.given) {}

  LogicalResult initialize(MLIRContext *context) override {
    llvm::Expected<ScheduleOverride> parsed = ScheduleOverride::parse(schedule);
    if (!parsed)
      return emitError(UnknownLoc::get(context), llvm::toString(parsed.takeError()));
    given = *parsed;
    if (target)
      return success();
    llvm::Expected<TargetInfo> supposed = TargetInfo::supposed(isa, threads);
    if (!supposed)
      return emitError(UnknownLoc::get(context), llvm::toString(supposed.takeError()));
    target = *supposed;
    return success();
  }

  void runOnOperation() override;

  std::optional<TargetInfo> target;
  ScheduleOverride given;
};

} // namespace

/// Records in the manifest what this is compiled for.
static void recordTarget(ModuleOp module, const TargetInfo &target) {
  Builder builder(module.getContext());
  SmallVector<StringRef> features, present;
  StringRef(target.features).split(features, ',', -1, /*KeepEmpty=*/false);
  for (StringRef feature : features)
    if (feature.consume_front("+"))
      present.push_back(feature);
  module->setAttr(attr::cpuFeatures, builder.getStrArrayAttr(present));
  module->setAttr(attr::threads, builder.getI64IntegerAttr(target.threads));
}

void LowerToLoops::runOnOperation() {
  ModuleOp module = getOperation();
  if (failed(emitKernels(module, *target, given)))
    return signalPassFailure();
  SymbolTable symbols(module);
  for (func::FuncOp entry : EntryIR::find(module))
    if (failed(EntryRewriter(entry, symbols, target->threads).run()))
      return signalPassFailure();
  recordTarget(module, *target);
}

std::unique_ptr<Pass> weft::createLowerToLoops(TargetInfo target, StringRef schedule) {
  return std::make_unique<LowerToLoops>(std::move(target), schedule);
}
