// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Lowering/Entries/EntryFunctionEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;

FailureOr<EntryFunction> weft::emitEntryFunction(const EntryIR &entry,
                                                 ArrayRef<func::FuncOp> fallbacks) {
  return EntryFunctionEmitter(entry, fallbacks).emit();
}

/// Addresses are computed before all stages, as they depend only on the arena and the thread; those
/// that depend on the step of a loop, in the loop.
FailureOr<EntryFunction> EntryFunctionEmitter::emit() {
  createFunction();
  loadTensors();
  Block &body = form.function().getBody().front();
  auto isStep = llvm::IsaPred<func::CallOp, scf::ForOp>;
  for (Operation &op : body.without_terminator()) {
    loc = op.getLoc();
    if (!isStep(op) && failed(emitAddress(&op)))
      return failure();
  }
  Block *ahead = builder.getInsertionBlock();
  beginStage();
  auto steps = llvm::make_filter_range(body.without_terminator(), isStep);
  for (Operation &op : steps)
    if (failed(emitStep(&op)))
      return failure();
  loc = body.getTerminator()->getLoc();
  if (verdictPending)
    return body.getTerminator()->emitOpError(
        "expected a verdict behind the last fallback or assert");
  LLVM::ReturnOp::create(builder, loc, integer(32, 0));
  builder.setInsertionPointToEnd(ahead);
  chooseStage();
  // If the entry begins with the end of a stage, there is no stage before the first fallback.
  auto call = steps.empty() ? func::CallOp() : dyn_cast<func::CallOp>(*steps.begin());
  int32_t first = call && serviceOf(calleeOf(call)) == "stage";
  return EntryFunction{function, first, static_cast<int32_t>(stages.size())};
}

void EntryFunctionEmitter::beginStage() {
  stages.push_back(newBlock());
  builder.setInsertionPointToEnd(stages.back());
}

void EntryFunctionEmitter::chooseStage() {
  if (stages.size() == 1) {
    LLVM::BrOp::create(builder, loc, stages.front());
    return;
  }
  Value stage = loadField(abi::field::contextStage, builder.getI32Type());
  auto numbers = llvm::to_vector(llvm::seq<int32_t>(1, stages.size()));
  SmallVector<ValueRange> operands(numbers.size());
  LLVM::SwitchOp::create(builder, loc, stage, stages.front(), ValueRange(), numbers,
                         ArrayRef(stages).drop_front(), operands);
}

void EntryFunctionEmitter::createFunction() {
  auto entry = form.function();
  builder.setInsertionPoint(entry);
  function = LLVM::LLVMFuncOp::create(builder, loc, ("weft_entry_" + entry.getName()).str(),
                                      abi::entryFunctionType(context), LLVM::Linkage::Internal);
  Block *block = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  contextPointer = block->getArgument(0);
  thread = block->getArgument(1);
  threads = block->getArgument(2);
  isFirst = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, thread, integer(32, 0));
  markFunction = loadField(abi::field::contextMark, pointer);
  wantsMark = LLVM::AndOp::create(builder, loc, isFirst, isNonZero(markFunction));
  auto wide = [&](Value value) -> Value {
    return LLVM::SExtOp::create(builder, loc, builder.getI64Type(), value);
  };
  values[form.thread()] = wide(thread);
  values[form.threads()] = wide(threads);
  values[form.arena()] = loadField(abi::field::contextArena, pointer);
}

void EntryFunctionEmitter::loadTensors() {
  Value table = loadField(abi::field::contextTensors, pointer);
  for (auto [index, tensor] : llvm::enumerate(form.tensors())) {
    if (tensor.use_empty())
      continue;
    Value address = LLVM::GEPOp::create(
        builder, loc, pointer, abi::tensorType(context), table,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index), abi::field::tensorData});
    values[tensor] = LLVM::LoadOp::create(builder, loc, pointer, address);
  }
}

LogicalResult EntryFunctionEmitter::emitAddress(Operation *op) {
  auto emitBinary = [this](auto of, auto made) {
    values[of] = decltype(made)::create(builder, loc, values.lookup(of.getLhs()),
                                        values.lookup(of.getRhs()));
    return success();
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::ConstantIndexOp constant) {
        values[constant] = integer(64, constant.value());
        return success();
      })
      .Case([&](arith::MulIOp op) { return emitBinary(op, LLVM::MulOp()); })
      .Case([&](arith::AddIOp op) { return emitBinary(op, LLVM::AddOp()); })
      .Case([&](arith::MaxSIOp op) { return emitBinary(op, LLVM::SMaxOp()); })
      .Case([&](arith::MinSIOp op) { return emitBinary(op, LLVM::SMinOp()); })
      .Case([&](arith::IndexCastOp cast) {
        values[cast] = values.lookup(cast.getIn());
        return success();
      })
      .Case([&](memref::LoadOp size) {
        Value address = LLVM::GEPOp::create(
            builder, loc, pointer, builder.getI64Type(), values.lookup(size.getMemRef()),
            ArrayRef<LLVM::GEPArg>{values.lookup(size.getIndices().front())});
        values[size] = LLVM::LoadOp::create(builder, loc, builder.getI64Type(), address);
        return success();
      })
      .Case([&](arith::SubIOp op) { return emitBinary(op, LLVM::SubOp()); })
      .Case([&](arith::DivUIOp op) { return emitBinary(op, LLVM::UDivOp()); })
      .Case([&](arith::RemUIOp op) { return emitBinary(op, LLVM::URemOp()); })
      .Case([&](arith::CmpIOp comparison) {
        // The predicates of both dialects are the same.
        auto predicate = static_cast<LLVM::ICmpPredicate>(comparison.getPredicate());
        values[comparison] =
            LLVM::ICmpOp::create(builder, loc, predicate, values.lookup(comparison.getLhs()),
                                 values.lookup(comparison.getRhs()));
        return success();
      })
      .Case([&](arith::SelectOp choice) {
        values[choice] = LLVM::SelectOp::create(builder, loc, values.lookup(choice.getCondition()),
                                                values.lookup(choice.getTrueValue()),
                                                values.lookup(choice.getFalseValue()));
        return success();
      })
      .Case([&](memref::ViewOp view) {
        emitView(view);
        return success();
      })
      .Case([&](UnrealizedConversionCastOp bytes) {
        values[bytes.getResult(0)] = values.lookup(bytes.getOperand(0));
        return success();
      })
      .Default(
          [](Operation *other) { return other->emitOpError("expected an op of the entry form"); });
}

void EntryFunctionEmitter::emitView(memref::ViewOp view) {
  values[view] = LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(),
                                     values.lookup(view.getSource()),
                                     ArrayRef<LLVM::GEPArg>{values.lookup(view.getByteShift())});
}

LogicalResult EntryFunctionEmitter::emitStep(Operation *op) {
  loc = op->getLoc();
  if (auto call = dyn_cast<func::CallOp>(op))
    return emitCall(call);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitLoop(loop);
  return emitAddress(op);
}

LogicalResult EntryFunctionEmitter::emitLoop(scf::ForOp loop) {
  SmallVector<Value> inits{values.lookup(loop.getLowerBound())};
  SmallVector<Type> types{builder.getI64Type()};
  for (Value init : loop.getInitArgs()) {
    inits.push_back(values.lookup(init));
    types.push_back(pointer);
  }
  Block *header = newBlock(types), *body = newBlock(), *behind = newBlock();
  LLVM::BrOp::create(builder, loc, inits, header);
  builder.setInsertionPointToEnd(header);
  Value index = header->getArgument(0);
  Value more = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::slt, index,
                                    values.lookup(loop.getUpperBound()));
  LLVM::CondBrOp::create(builder, loc, more, body, behind);

  builder.setInsertionPointToEnd(body);
  for (auto [inside, argument] :
       llvm::zip_equal(loop.getBody()->getArguments(), header->getArguments()))
    values[inside] = argument;
  for (Operation &op : loop.getBody()->without_terminator())
    if (failed(emitStep(&op)))
      return failure();
  SmallVector<Value> next{LLVM::AddOp::create(builder, loc, index, values.lookup(loop.getStep()))};
  for (Value yielded : loop.getYieldedValues())
    next.push_back(values.lookup(yielded));
  LLVM::BrOp::create(builder, loc, next, header);
  builder.setInsertionPointToEnd(behind);
  return success();
}

LogicalResult EntryFunctionEmitter::emitCall(func::CallOp call) {
  func::FuncOp callee = calleeOf(call);
  StringRef service = serviceOf(callee);
  if (service == "barrier")
    emitBarrier();
  else if (service == "verdict")
    emitVerdict();
  else if (service == "stage")
    emitStageEnd();
  else if (service == "fallback")
    emitFallback(call, callee);
  else if (service == "assert")
    emitAssert(call);
  else if (service == "copy")
    emitCopy(call);
  else if (callee->hasAttr(attr::kernel))
    emitKernelCall(call, callee);
  else
    return call.emitOpError("expected a call to a kernel or a service");
  return success();
}

void EntryFunctionEmitter::emitKernelCall(func::CallOp call, func::FuncOp kernel) {
  auto operands = llvm::map_to_vector(call.getOperands(),
                                      [&](Value operand) { return values.lookup(operand); });
  auto emit = [&] { LLVM::CallOp::create(builder, loc, TypeRange(), kernel.getName(), operands); };
  if (isSerial(kernel)) {
    operands[operands.size() - 2] = integer(64, 0);
    operands.back() = integer(64, 1);
    emitIf(isFirst, emit);
  } else {
    emit();
  }
  emitMark();
}

void EntryFunctionEmitter::emitBarrier() {
  Value team =
      LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::sgt, threads, integer(32, 1));
  emitIf(team, [&] {
    Value barrier = loadField(abi::field::contextBarrier, pointer);
    LLVM::CallOp::create(builder, loc, abi::barrierFunctionType(context),
                         ValueRange{barrier, contextPointer, thread});
  });
}

/// A barrier, after which all threads return if thread 0 has set the status.
void EntryFunctionEmitter::emitVerdict() {
  emitBarrier();
  verdictPending = false;
  Value status = loadField(abi::field::contextStatus, builder.getI32Type());
  Block *leave = newBlock(), *goOn = newBlock();
  LLVM::CondBrOp::create(builder, loc, isNonZero(status), leave, goOn);
  builder.setInsertionPointToEnd(leave);
  LLVM::ReturnOp::create(builder, loc, status);
  builder.setInsertionPointToEnd(goOn);
}

/// The caller checks the status between stages.
void EntryFunctionEmitter::emitStageEnd() {
  verdictPending = false;
  LLVM::ReturnOp::create(builder, loc, integer(32, 0));
  beginStage();
}

void EntryFunctionEmitter::emitMark() {
  int32_t number = callNumber++;
  emitIf(wantsMark, [&] {
    LLVM::CallOp::create(builder, loc, abi::markFunctionType(context),
                         ValueRange{markFunction, contextPointer, integer(32, number)});
  });
}

void EntryFunctionEmitter::emitIf(Value condition, llvm::function_ref<void()> then) {
  Block *inside = newBlock(), *behind = newBlock();
  LLVM::CondBrOp::create(builder, loc, condition, inside, behind);
  builder.setInsertionPointToEnd(inside);
  then();
  LLVM::BrOp::create(builder, loc, behind);
  builder.setInsertionPointToEnd(behind);
}

Block *EntryFunctionEmitter::newBlock(ArrayRef<Type> arguments) {
  OpBuilder::InsertionGuard guard(builder);
  Region &region = function.getBody();
  SmallVector<Location> locations(arguments.size(), loc);
  return builder.createBlock(&region, region.end(), arguments, locations);
}
