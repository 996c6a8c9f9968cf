// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arithmetic on vectors of one floating-point type, and on integers of as many bits, at one place:
// what elementary functions are written in.
#ifndef WEFT_COMPILER_KERNELS_VECTORARITHMETIC_H
#define WEFT_COMPILER_KERNELS_VECTORARITHMETIC_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/STLExtras.h"

namespace weft {

class VectorArithmetic {
protected:
  using Value = mlir::Value;

  VectorArithmetic(mlir::ImplicitLocOpBuilder builder, mlir::VectorType type)
      : b(builder), type(type),
        intType(type.clone(b.getIntegerType(type.getElementTypeBitWidth()))) {}

  template <typename Number, size_t terms>
  Value polynomial(const Number (&coefficients)[terms], Value x) {
    Value sum = constant(coefficients[terms - 1]);
    for (Number coefficient : llvm::reverse(llvm::ArrayRef(coefficients).drop_back()))
      sum = fma(sum, x, constant(coefficient));
    return sum;
  }
  /// x + x^3 p(x^2), where `tail` is p.
  template <typename Number, size_t terms>
  Value oddPolynomial(const Number (&tail)[terms], Value x) {
    Value squared = mul(x, x);
    return fma(mul(squared, x), polynomial(tail, squared), x);
  }

  Value constant(double value) { return splat(type, b.getFloatAttr(type.getElementType(), value)); }
  Value integer(int64_t value) {
    return splat(intType, b.getIntegerAttr(intType.getElementType(), value));
  }

  Value fma(Value x, Value y, Value z) { return mlir::math::FmaOp::create(b, x, y, z); }
  Value add(Value x, Value y) { return mlir::arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return mlir::arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return mlir::arith::MulFOp::create(b, x, y); }
  Value div(Value x, Value y) { return mlir::arith::DivFOp::create(b, x, y); }
  /// Whether there are sixteen lanes to pick in.
  bool hasPermutation() const { return type.getNumElements() == 16; }
  /// In each of sixteen lanes the number of `table` that the low four bits of `index` choose, by
  /// AVX-512's permutation.
  Value pick(llvm::ArrayRef<float> table, Value index);
  Value negate(Value x) { return mlir::arith::NegFOp::create(b, x); }
  Value absolute(Value x) { return mlir::math::AbsFOp::create(b, x); }
  Value truncate(Value x) { return mlir::math::TruncOp::create(b, x); }
  Value withSignOf(Value x, Value sign) { return mlir::math::CopySignOp::create(b, x, sign); }

  Value bitsOf(Value x) { return mlir::arith::BitcastOp::create(b, intType, x); }
  Value fromBits(Value bits) { return mlir::arith::BitcastOp::create(b, type, bits); }
  Value toFloat(Value integer) { return mlir::arith::SIToFPOp::create(b, type, integer); }
  /// The float 2^(k - bias), where the low bits of `biased` are k.
  Value scaleOf(Value biased) { return fromBits(shiftLeft(biased, mantissaBits())); }
  /// That are stored.
  int64_t mantissaBits() const {
    return mlir::cast<mlir::FloatType>(type.getElementType()).getFPMantissaWidth() - 1;
  }
  Value addInt(Value x, Value y) { return mlir::arith::AddIOp::create(b, x, y); }
  Value subInt(Value x, Value y) { return mlir::arith::SubIOp::create(b, x, y); }
  Value shiftLeft(Value x, int64_t by) { return mlir::arith::ShLIOp::create(b, x, integer(by)); }
  Value shiftRight(Value x, int64_t by) { return mlir::arith::ShRSIOp::create(b, x, integer(by)); }
  /// Of integers or of conditions.
  Value both(Value x, Value y) { return mlir::arith::AndIOp::create(b, x, y); }

  // Ordered: false for NaN.
  Value less(Value x, Value y) { return compare(mlir::arith::CmpFPredicate::OLT, x, y); }
  Value equal(Value x, Value y) { return compare(mlir::arith::CmpFPredicate::OEQ, x, y); }
  Value compare(mlir::arith::CmpFPredicate predicate, Value x, Value y) {
    return mlir::arith::CmpFOp::create(b, predicate, x, y);
  }
  /// Of zeros and NaN, too: what has the sign bit.
  Value isNegative(Value x) {
    return mlir::arith::CmpIOp::create(b, mlir::arith::CmpIPredicate::slt, bitsOf(x), integer(0));
  }
  Value select(Value condition, Value yes, Value no) {
    return mlir::arith::SelectOp::create(b, condition, yes, no);
  }
  // NaN passes: the comparison is false, and x86 has one instruction for just this.
  Value atMost(Value x, double bound) {
    Value limit = constant(bound);
    return select(less(limit, x), limit, x);
  }
  Value atLeast(Value x, double bound) {
    Value limit = constant(bound);
    return select(less(x, limit), limit, x);
  }

  /// `inVectors` where all lanes of `isEasy` hold, else `function` of the library.
  Value branch(Value isEasy, mlir::Operation *function, llvm::function_ref<Value()> inVectors);

  mlir::ImplicitLocOpBuilder b;
  mlir::VectorType type, intType;

private:
  Value splat(mlir::VectorType of, mlir::Attribute value) {
    return mlir::arith::ConstantOp::create(b, mlir::DenseElementsAttr::get(of, value));
  }
};

} // namespace weft

#endif
