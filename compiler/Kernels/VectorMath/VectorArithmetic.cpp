// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/VectorMath/VectorArithmetic.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <array>

using namespace mlir;
using namespace weft;

Value VectorArithmetic::pick(ArrayRef<float> table, Value index) {
  auto values = arith::ConstantOp::create(b, DenseElementsAttr::get(type, table));
  auto name = b.getStringAttr("llvm.x86.avx512.permvar.sf.512");
  return LLVM::CallIntrinsicOp::create(b, type, name, ValueRange{values, index}).getResult(0);
}

Value VectorArithmetic::polynomial(ArrayRef<double> coefficients, Value x) {
  Value squared = mul(x, x);
  std::array<Value, 2> sums; // of even and of odd powers
  for (size_t term = coefficients.size(); term-- > 0;) {
    Value &sum = sums[term % 2], coefficient = constant(coefficients[term]);
    sum = sum ? fma(sum, squared, coefficient) : coefficient;
  }
  return fma(sums[1], x, sums[0]);
}

VectorArithmetic::Pair VectorArithmetic::fastSum(Value x, Value y) {
  Value high = add(x, y);
  return {high, sub(y, sub(high, x))};
}

VectorArithmetic::Pair VectorArithmetic::sum(Value x, Value y) {
  Value high = add(x, y), ofY = sub(high, x), ofX = sub(high, ofY);
  return {high, add(sub(x, ofX), sub(y, ofY))};
}

VectorArithmetic::Pair VectorArithmetic::product(Value x, Value y) {
  Value high = mul(x, y);
  return {high, fma(x, y, negate(high))};
}

VectorArithmetic::Pair VectorArithmetic::multiple(Value x, double high, double low) {
  auto [product, lost] = this->product(x, constant(high));
  return {product, fma(x, constant(low), lost)};
}

VectorArithmetic::Pair VectorArithmetic::quotient(Pair x, Pair y) {
  Value inverse = div(constant(1.0), y.high), high = mul(x.high, inverse);
  Value rest = fma(negate(high), y.high, x.high);
  if (x.low)
    rest = add(rest, x.low);
  return {high, mul(fma(negate(high), y.low, rest), inverse)};
}

VectorArithmetic::Pair VectorArithmetic::squareRoot(Pair x) {
  Value root = math::SqrtOp::create(b, x.high), rest = fma(negate(root), root, x.high);
  if (x.low)
    rest = add(rest, x.low);
  // For zero, the rounding error is zero.
  Value twice = add(root, root), least = constant(format.smallestNormal);
  return {root, div(rest, select(less(twice, least), least, twice))};
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
