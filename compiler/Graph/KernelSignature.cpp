// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Graph/KernelSignature.h"
#include "compiler/Graph/AttributeNames.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace weft;

MemRefType weft::memrefOf(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return MemRefType::get(type.getShape(), type.getElementType());
}

static int64_t integerOf(func::FuncOp kernel, StringRef name) {
  auto attribute = kernel->getAttrOfType<IntegerAttr>(name);
  return attribute ? attribute.getInt() : 0;
}

KernelSignature KernelSignature::ofTensors(func::FuncOp kernel) {
  KernelSignature signature;
  llvm::append_range(signature.inputs, llvm::map_range(kernel.getArgumentTypes(), memrefOf));
  llvm::append_range(signature.outputs, llvm::map_range(kernel.getResultTypes(), memrefOf));
  signature.scratchBytes = integerOf(kernel, attr::scratchBytes);
  return signature;
}

KernelSignature KernelSignature::of(func::FuncOp emitted) {
  KernelSignature signature;
  ArrayRef<Type> types = emitted.getArgumentTypes().drop_back(2);
  if (emitted->hasAttr(attr::claims)) {
    signature.counters = cast<MemRefType>(types.back());
    types = types.drop_back();
  }
  ArrayRef<Type> buffers = types.drop_back();
  int64_t inputs = integerOf(emitted, attr::numInputs);
  signature.inputs = llvm::to_vector(buffers.take_front(inputs));
  signature.outputs = llvm::to_vector(buffers.drop_front(inputs));
  signature.scratchBytes = integerOf(emitted, attr::scratchBytes);
  return signature;
}

FunctionType KernelSignature::type(MLIRContext *context) const {
  Builder builder(context);
  SmallVector<Type> types = llvm::to_vector(llvm::concat<const Type>(inputs, outputs));
  types.push_back(MemRefType::get({scratchBytes}, builder.getI8Type()));
  if (counters)
    types.push_back(counters);
  types.append(2, builder.getIndexType());
  return builder.getFunctionType(types, {});
}

void KernelSignature::mark(func::FuncOp emitted) const {
  Builder builder(emitted.getContext());
  if (counters)
    emitted->setAttr(attr::claims, builder.getI64IntegerAttr(counters.getDimSize(0)));
  emitted->setAttr(attr::scratchBytes, builder.getI64IntegerAttr(scratchBytes));
}
