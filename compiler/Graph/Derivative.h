// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a rule of differentiation reads and writes.
#ifndef WEFT_COMPILER_GRAPH_DERIVATIVE_H
#define WEFT_COMPILER_GRAPH_DERIVATIVE_H

#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/ComputeBuilder.h"
#include "mlir/IR/DialectRegistry.h"

namespace weft {

/// The cotangents of one op: known of its results, wanted of its operands. Zeros are no values:
/// a result without a cotangent has a null one, and an operand that is given none has zero.
class Cotangents : public ComputeBuilder {
public:
  /// Writes at `builder`'s insertion point. `results`: one per result, null for zero; `wanted`:
  /// one flag per operand.
  Cotangents(mlir::OpBuilder &builder, mlir::Operation *op, llvm::ArrayRef<mlir::Value> results,
             llvm::ArrayRef<bool> wanted);

  mlir::Value of(unsigned result = 0) const { return results[result]; }
  bool wants(unsigned operand) const { return wanted[operand]; }
  /// Whether the optional operand `value` is there, and wants one.
  bool wants(mlir::Value value) const;
  /// `cotangent` of operand number `operand`, if it wants one. At most once each.
  void give(unsigned operand, mlir::Value cotangent);
  /// The same for the operand that `value` is; each operand in turn where several are.
  void give(mlir::Value value, mlir::Value cotangent);
  mlir::Value given(unsigned operand) const { return operands[operand]; }

  mlir::OpBuilder &getBuilder() { return builder; }
  /// The op's attr::subgradient, or nothing.
  llvm::StringRef subgradient() const;

  // What several rules write.

  mlir::Value mul(mlir::Value x, mlir::Value y) { return create<MulOp>(x, y); }
  mlir::Value add(mlir::Value x, mlir::Value y) { return create<AddOp>(x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return create<SubOp>(x, y); }
  mlir::Value div(mlir::Value x, mlir::Value y) { return create<DivOp>(x, y); }
  mlir::Value neg(mlir::Value x) { return create<NegOp>(x); }
  mlir::Value scale(mlir::Value x, double by) { return mul(x, splat(x, by)); }
  mlir::Value shift(mlir::Value x, double by) { return add(x, splat(x, by)); }
  /// x y, 0 where x is 0, whatever y is.
  mlir::Value productOrZero(mlir::Value x, mlir::Value y);
  mlir::Value compare(ComparePredicate predicate, mlir::Value x, mlir::Value y);
  mlir::Value compare(ComparePredicate predicate, mlir::Value x, double number);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  /// `value` where `condition` holds, else 0.
  mlir::Value where(mlir::Value condition, mlir::Value value);
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> perm);
  /// Sums `dims` in the type computed in.
  mlir::Value total(mlir::Value value, llvm::ArrayRef<int64_t> dims);
  /// Zeros of `shape` with `value` at start, start + stride, ... of every dim.
  mlir::Value place(mlir::Value value, llvm::ArrayRef<int64_t> start,
                    llvm::ArrayRef<int64_t> stride, llvm::ArrayRef<int64_t> shape);
  /// Zeros around `value`, or less of it where a number is negative.
  mlir::Value padZeros(mlir::Value value, llvm::ArrayRef<int64_t> low,
                       llvm::ArrayRef<int64_t> high);
  mlir::Value slice(mlir::Value value, llvm::ArrayRef<int64_t> start, llvm::ArrayRef<int64_t> limit,
                    llvm::ArrayRef<int64_t> stride);

private:
  mlir::OpBuilder &builder;
  mlir::Operation *op;
  llvm::ArrayRef<mlir::Value> results;
  llvm::ArrayRef<bool> wanted;
  llvm::SmallVector<mlir::Value> operands;
};

} // namespace weft

#include "compiler/Graph/Derivative.h.inc"

namespace weft {

/// Attaches `rule`, a function or lambda of (OpTy, Cotangents &), to OpTy.
template <typename OpTy, auto rule, bool repeats = false>
struct DerivativeModel
    : DifferentiableOpInterface::ExternalModel<DerivativeModel<OpTy, rule, repeats>, OpTy> {
  llvm::LogicalResult buildVJP(mlir::Operation *op, Cotangents &cotangents) const {
    return rule(mlir::cast<OpTy>(op), cotangents);
  }
  bool repeatsSteps(mlir::Operation *) const { return repeats; }
};
template <typename OpTy, auto rule, bool repeats = false> void derive(mlir::MLIRContext *context) {
  OpTy::template attachInterface<DerivativeModel<OpTy, rule, repeats>>(*context);
}

/// Makes every op's derivative known to contexts of `registry`.
void registerDerivatives(mlir::DialectRegistry &registry);

// By family.
void deriveUnary(mlir::MLIRContext *context);
void deriveBinary(mlir::MLIRContext *context);
void deriveShape(mlir::MLIRContext *context);
void deriveReduce(mlir::MLIRContext *context);
void deriveContract(mlir::MLIRContext *context);
void deriveIndex(mlir::MLIRContext *context);
void deriveComposite(mlir::MLIRContext *context);
void deriveAttention(mlir::MLIRContext *context);
void deriveScan(mlir::MLIRContext *context);
void deriveSlopes(mlir::MLIRContext *context);

} // namespace weft

#endif
