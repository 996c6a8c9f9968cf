// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fallbacks, asserts and copies of an entry: thread 0 does them alone.
#include "compiler/Lowering/Entries/EntryFunctionEmitter.h"

using namespace mlir;
using namespace weft;

void EntryFunctionEmitter::emitFallback(func::CallOp call, func::FuncOp service) {
  int64_t number = llvm::find(fallbacks, service) - fallbacks.begin();
  CallOperands operands = operandsOf(call, service);
  int32_t numInputs = operands.inputs.size();
  emitIf(isFirst, [&] {
    Value tensors = emitTensors(call, service);
    Value outputs = LLVM::GEPOp::create(builder, loc, pointer, abi::tensorType(context), tensors,
                                        ArrayRef<LLVM::GEPArg>{numInputs});
    Value fallback = loadField(abi::field::contextFallback, pointer);
    auto result = LLVM::CallOp::create(builder, loc, abi::fallbackFunctionType(context),
                                       ValueRange{fallback, contextPointer, integer(32, number),
                                                  tensors, integer(32, numInputs), outputs,
                                                  integer(32, operands.outputs.size())});
    storeStatus(result.getResult());
  });
  verdictPending = true;
  emitMark();
}

/// The operands of `call` as an array of WeftTensor on the stack.
Value EntryFunctionEmitter::emitTensors(func::CallOp call, func::FuncOp service) {
  Type type = abi::tensorType(context);
  Value array;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.getBody().front());
    array = LLVM::AllocaOp::create(builder, loc, pointer, type, integer(64, call.getNumOperands()),
                                   /*alignment=*/8);
  }
  for (auto [index, operand] : llvm::enumerate(call.getOperands())) {
    auto logical = service.getArgAttrOfType<TypeAttr>(index, attr::type);
    abi::TensorInfo info = abi::describe(cast<RankedTensorType>(logical.getValue()));
    constexpr int32_t cpu = 1;
    Value fields[] = {values.lookup(operand),
                      dimensions(info.shape),
                      dimensions(info.strides),
                      integer(32, info.shape.size()),
                      integer(32, info.dtype),
                      integer(32, cpu),
                      integer(32, 0)};
    for (auto [field, value] : llvm::enumerate(fields)) {
      Value address = LLVM::GEPOp::create(
          builder, loc, pointer, type, array,
          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index), static_cast<int32_t>(field)});
      LLVM::StoreOp::create(builder, loc, value, address);
    }
  }
  return array;
}

Value EntryFunctionEmitter::dimensions(ArrayRef<int64_t> dims) {
  std::string name = "weft_dims";
  for (int64_t dim : dims)
    name += "_" + std::to_string(dim);
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(module.getBody());
    // A scalar has no dims, but its arrays need an address.
    SmallVector<int64_t> stored(dims);
    if (stored.empty())
      stored.push_back(0);
    auto type = LLVM::LLVMArrayType::get(builder.getI64Type(), stored.size());
    LLVM::GlobalOp::create(builder, module.getLoc(), type, /*isConstant=*/true,
                           LLVM::Linkage::Internal, name, builder.getI64TensorAttr(stored));
  }
  return LLVM::AddressOfOp::create(builder, loc, pointer, name);
}

/// Sets the status to the assert's number, from 1, if an element is zero and no earlier assert has
/// failed.
void EntryFunctionEmitter::emitAssert(func::CallOp call) {
  Value condition = call.getOperand(0);
  int64_t elements = cast<MemRefType>(condition.getType()).getNumElements();
  Value data = values.lookup(condition);
  Type i64 = builder.getI64Type(), i32 = builder.getI32Type();
  ++assertNumber;
  emitIf(isFirst, [&] {
    Block *header = newBlock({i64}), *body = newBlock(), *failed = newBlock(), *done = newBlock();
    LLVM::BrOp::create(builder, loc, ValueRange{integer(64, 0)}, header);

    builder.setInsertionPointToEnd(header);
    Value index = header->getArgument(0);
    Value more =
        LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::slt, index, integer(64, elements));
    LLVM::CondBrOp::create(builder, loc, more, body, done);

    builder.setInsertionPointToEnd(body);
    Value address = LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), data,
                                        ArrayRef<LLVM::GEPArg>{index});
    Value element = LLVM::LoadOp::create(builder, loc, builder.getI8Type(), address);
    Value next = LLVM::AddOp::create(builder, loc, index, integer(64, 1));
    LLVM::CondBrOp::create(builder, loc, isNonZero(element), header, ValueRange{next}, failed,
                           ValueRange());

    builder.setInsertionPointToEnd(failed);
    Value status = loadField(abi::field::contextStatus, i32);
    storeStatus(
        LLVM::SelectOp::create(builder, loc, isNonZero(status), status, integer(32, assertNumber)));
    LLVM::BrOp::create(builder, loc, ValueRange(), done);

    builder.setInsertionPointToEnd(done);
  });
  verdictPending = true;
}

void EntryFunctionEmitter::emitCopy(func::CallOp call) {
  int64_t bytes = byteSize(cast<MemRefType>(call.getOperand(0).getType()));
  emitIf(isFirst, [&] {
    LLVM::MemcpyOp::create(builder, loc, values.lookup(call.getOperand(1)),
                           values.lookup(call.getOperand(0)), integer(64, bytes),
                           /*isVolatile=*/false);
  });
}
