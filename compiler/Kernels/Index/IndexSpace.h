// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Index arithmetic over loop variables whose ranges are known. Every index of an emitted
// kernel is an affine expression of the dims of one IndexSpace.
#ifndef WEFT_COMPILER_KERNELS_INDEX_INDEXSPACE_H
#define WEFT_COMPILER_KERNELS_INDEX_INDEXSPACE_H

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/SmallVector.h"

namespace weft {

using Index = llvm::SmallVector<mlir::AffineExpr, 4>;

/// Loop variables, numbered as affine dims; variable i takes the values [0, extent(i)).
class IndexSpace {
public:
  explicit IndexSpace(mlir::MLIRContext *context) : context(context) {}

  mlir::AffineExpr addDim(int64_t extent);
  int64_t extent(unsigned dim) const { return extents[dim]; }
  /// Number of points in the product of `dims`.
  int64_t count(llvm::ArrayRef<unsigned> dims) const;
  unsigned size() const { return extents.size(); }

  /// Bounds of `expr`, both inclusive; conservative.
  std::pair<int64_t, int64_t> rangeOf(mlir::AffineExpr expr) const;

  /// `expr` with divisions and remainders removed where the ranges allow it.
  mlir::AffineExpr simplify(mlir::AffineExpr expr) const;

  /// Row-major position of `index` in a shape.
  mlir::AffineExpr linearize(llvm::ArrayRef<mlir::AffineExpr> index,
                             llvm::ArrayRef<int64_t> shape) const;
  /// The inverse of linearize.
  Index delinearize(mlir::AffineExpr position, llvm::ArrayRef<int64_t> shape) const;

  /// c if `expr` is c * dim + (terms without dim); nullopt if dim occurs in a division or
  /// remainder.
  std::optional<int64_t> coefficientOf(mlir::AffineExpr expr, unsigned dim) const;

  mlir::AffineExpr constant(int64_t value) const {
    return mlir::getAffineConstantExpr(value, context);
  }

private:
  struct Sum;
  struct Parts {
    int64_t unit;
    mlir::AffineExpr units, below;
  };

  static void flatten(mlir::AffineExpr expr, int64_t scale, Sum &sum);
  static bool mergeQuotientWithRemainder(Sum &sum);
  static mlir::AffineExpr build(Sum &sum, mlir::MLIRContext *context);
  mlir::AffineExpr divide(mlir::AffineExprKind kind, mlir::AffineExpr value, int64_t divisor) const;
  std::optional<Parts> partsOf(const Sum &sum, int64_t divisor) const;

  mlir::MLIRContext *context;
  llvm::SmallVector<int64_t> extents;
};

} // namespace weft

#endif
