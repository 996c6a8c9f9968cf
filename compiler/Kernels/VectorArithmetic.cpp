// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/VectorArithmetic.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

Value VectorArithmetic::pick(ArrayRef<float> table, Value index) {
  auto values = arith::ConstantOp::create(b, DenseElementsAttr::get(type, table));
  auto name = b.getStringAttr("llvm.x86.avx512.permvar.sf.512");
  return LLVM::CallIntrinsicOp::create(b, type, name, ValueRange{values, index}).getResult(0);
}

Value VectorArithmetic::branch(Value isEasy, Operation *function,
                               llvm::function_ref<Value()> inVectors) {
  Value all = vector::ReductionOp::create(b, vector::CombiningKind::AND, isEasy);
  auto branch = scf::IfOp::create(b, type, all, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(b, inVectors());
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, b.clone(*function)->getResult(0));
  return branch.getResult(0);
}
