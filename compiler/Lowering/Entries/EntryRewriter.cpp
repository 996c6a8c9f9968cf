// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Lowering/Entries/EntryRewriter.h"
#include "compiler/Graph/EntryRole.h"
#include "compiler/Kernels/Kernels.h"
#include "compiler/Lowering/Entries/EntryIR.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace weft;

LogicalResult EntryRewriter::run() {
  isBind = roleOf(entry) == EntryRole::bind;
  Block &block = entry.getBody().front();
  auto operations = llvm::map_to_vector(block, [](Operation &op) { return &op; });
  if (failed(changeSignature()))
    return failure();
  for (Operation *op : operations) {
    builder.setInsertionPoint(op);
    if (failed(rewrite(op)))
      return failure();
  }
  for (Operation *op : llvm::reverse(operations))
    op->erase();
  builder.setInsertionPointToEnd(&block);
  for (auto [from, to] : copies)
    copy(from, to);
  func::ReturnOp::create(builder, entry.getLoc());
  // The old arguments stand before the new ones.
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
    if (list.get(attr::bounds))
      sizes = buffers[argument];
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
  if (auto call = dyn_cast<func::CallOp>(op))
    return rewriteCall(call);
  if (auto fallback = dyn_cast<TorchFallbackOp>(op))
    return rewriteFallback(fallback);
  if (auto assertion = dyn_cast<AssertOp>(op))
    return rewriteAssert(assertion);
  if (auto advance = dyn_cast<AdvanceOp>(op))
    return rewriteAdvance(advance);
  if (auto loop = dyn_cast<LoopOp>(op))
    return rewriteLoop(loop);
  if (isa<func::ReturnOp, UnrealizedConversionCastOp>(op))
    return success();
  return op->emitOpError("expected only calls, loops, fallbacks, asserts and advances in an entry");
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
    // Neither does a step own what it is given, nor a loop's last state its memory.
    if (isa<BlockArgument>(tensor) || tensor.getDefiningOp<LoopOp>())
      continue;
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
  KernelSignature signature = KernelSignature::of(callee);
  operands.push_back(scratchFor(signature.scratchBytes, call.getLoc()));
  if (signature.counters)
    operands.push_back(claimsFor(signature.counters, callee.getLoc()));
  llvm::append_range(operands, entry.getBody().front().getArguments().take_back(2));
  anyParallel |= !isSerial(callee);
  func::CallOp::create(builder, call.getLoc(), callee, operands);
  return success();
}

/// Assigns sets of counters round-robin: a set is reused only after a barrier, which is inserted if
/// there is none.
Value EntryRewriter::claimsFor(MemRefType type, Location loc) {
  constexpr int64_t fewestSets = 16;
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
  Value offset = arith::ConstantIndexOp::create(builder, loc, claimed);
  claimed += bytes;
  return memref::ViewOp::create(builder, loc, type, claims, offset, ValueRange());
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

void EntryRewriter::copy(Value from, Value to) {
  auto service = declareService("copy", from.getType(), to.getType());
  func::CallOp::create(builder, entry.getLoc(), service, ValueRange{from, to});
}
