// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arithmetic on vectors of one float type, and on integers of the same width, at one insertion
// point: a base class of the elementary functions.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_VECTORARITHMETIC_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_VECTORARITHMETIC_H

#include "compiler/Kernels/VectorMath/FloatFormat.h"
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
        intType(type.clone(b.getIntegerType(type.getElementTypeBitWidth()))),
        format(type.getElementType().isF64() ? float64Format : float32Format) {}

  /// An unevaluated sum of two numbers (double-double), the first much larger.
  struct Pair {
    Value high, low;
  };

  template <size_t terms> Value polynomial(const float (&coefficients)[terms], Value x) {
    Value sum = constant(coefficients[terms - 1]);
    for (float coefficient : llvm::reverse(llvm::ArrayRef(coefficients).drop_back()))
      sum = fma(sum, x, constant(coefficient));
    return sum;
  }
  /// Evaluated in two chains, of even and of odd powers, to shorten the dependency chain.
  Value polynomial(llvm::ArrayRef<double> coefficients, Value x);
  /// With the coefficients of the vectors' type.
  template <size_t terms, size_t wideTerms>
  Value polynomial(const float (&coefficients)[terms], const double (&wideCoefficients)[wideTerms],
                   Value x) {
    return isWide() ? polynomial(llvm::ArrayRef(wideCoefficients), x) : polynomial(coefficients, x);
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
  /// Whether the vectors have 16 f32 lanes, so that AVX-512 can permute a table.
  bool hasPermutation() const { return type.getNumElements() == 16 && !isWide(); }
  /// Whether the vectors are f64.
  bool isWide() const { return &format == &float64Format; }
  /// In each of 16 lanes the entry of `table` selected by the low four bits of `index` (vpermps).
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
  /// Stored mantissa bits.
  int64_t mantissaBits() const {
    return mlir::cast<mlir::FloatType>(type.getElementType()).getFPMantissaWidth() - 1;
  }
  int64_t signBit() const { return type.getElementTypeBitWidth() - 1; }
  Value addInt(Value x, Value y) { return mlir::arith::AddIOp::create(b, x, y); }
  Value subInt(Value x, Value y) { return mlir::arith::SubIOp::create(b, x, y); }
  Value shiftLeft(Value x, int64_t by) { return mlir::arith::ShLIOp::create(b, x, integer(by)); }
  Value orInt(Value x, Value y) { return mlir::arith::OrIOp::create(b, x, y); }
  Value shiftRight(Value x, int64_t by) { return mlir::arith::ShRSIOp::create(b, x, integer(by)); }
  /// Bitwise and, of integers or of conditions.
  Value both(Value x, Value y) { return mlir::arith::AndIOp::create(b, x, y); }

  // Ordered: false for NaN.
  Value less(Value x, Value y) { return compare(mlir::arith::CmpFPredicate::OLT, x, y); }
  Value equal(Value x, Value y) { return compare(mlir::arith::CmpFPredicate::OEQ, x, y); }
  Value compare(mlir::arith::CmpFPredicate predicate, Value x, Value y) {
    return mlir::arith::CmpFOp::create(b, predicate, x, y);
  }
  /// Whether the sign bit is set, including zeros and NaN.
  Value isNegative(Value x) {
    return mlir::arith::CmpIOp::create(b, mlir::arith::CmpIPredicate::slt, bitsOf(x), integer(0));
  }
  Value select(Value condition, Value yes, Value no) {
    return mlir::arith::SelectOp::create(b, condition, yes, no);
  }
  // NaN passes: the comparison is false, and x86 has one instruction for exactly this (minps).
  Value atMost(Value x, double bound) {
    Value limit = constant(bound);
    return select(less(limit, x), limit, x);
  }
  Value atLeast(Value x, double bound) {
    Value limit = constant(bound);
    return select(less(x, limit), limit, x);
  }

  /// `inVectors` if all lanes of `isEasy` hold, else the library's `function`.
  Value branch(Value isEasy, mlir::Operation *function, llvm::function_ref<Value()> inVectors);

  // Error-free sums and products (T. J. Dekker, "A floating-point technique for extending
  // the available precision", 1971; D. E. Knuth, "The Art of Computer Programming 2", 4.2.2).
  /// Requires x to be zero or the larger in magnitude.
  Pair fastSum(Value x, Value y);
  Pair sum(Value x, Value y);
  Pair product(Value x, Value y);
  /// Nearly exact; the dividend may have no low part.
  Pair quotient(Pair x, Pair y);
  /// Square root of a non-negative sum; the argument may have no low part.
  Pair squareRoot(Pair x);
  /// x times the constant high + low, rounded to `type`.
  Pair multiple(Value x, double high, double low);

  /// The same sum, with the nearest number to it as the first.
  Pair normalized(Pair x) { return fastSum(x.high, x.low); }
  Value collapse(Pair x) { return add(x.high, x.low); }
  Pair select(Value condition, Pair yes, Pair no) {
    return {select(condition, yes.high, no.high), select(condition, yes.low, no.low)};
  }

  mlir::ImplicitLocOpBuilder b;
  mlir::VectorType type, intType;
  const FloatFormat &format;

private:
  Value splat(mlir::VectorType of, mlir::Attribute value) {
    return mlir::arith::ConstantOp::create(b, mlir::DenseElementsAttr::get(of, value));
  }
};

} // namespace weft

#endif
