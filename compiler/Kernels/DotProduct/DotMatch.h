// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A contraction of a kernel whose vectors run along the reduction: its operands, epilogue, and what
// its schedule is chosen from.
#ifndef WEFT_COMPILER_KERNELS_DOTPRODUCT_DOTMATCH_H
#define WEFT_COMPILER_KERNELS_DOTPRODUCT_DOTMATCH_H

#include "compiler/Kernels/DotProduct/DotOperands.h"
#include "compiler/Kernels/Emission/Epilogue.h"

namespace weft {

/// Such a contraction as its schedule sees it.
struct DotProblem {
  int64_t rows = 1, columns = 1, depth = 1;
  unsigned elementBits = 32; ///< of the sums
  unsigned columnBits = 32;  ///< of an element of the columns
  int64_t outer = 1;         ///< products of that size
  int64_t flops = 0;
  bool hasRows = true;      ///< a loop over rows
  bool halves = false;      ///< float32 sums of bfloat16 products
  bool oneReduced = true;   ///< `depth` is the whole reduction
  bool coldColumns = false; ///< they come from memory in every call
};

struct DotMatch {
  /// Fails unless both operands of `generic`, of the tensor form `kernel`, are contiguous along the
  /// reduction and all that depends on it does so elementwise.
  static llvm::FailureOr<DotMatch> of(mlir::linalg::GenericOp generic, mlir::func::FuncOp kernel,
                                      const TargetInfo &target);

  mlir::linalg::GenericOp generic;
  IndexSpace space;
  DotOperands dot;
  llvm::SmallVector<EpilogueRoot> roots;
  DotProblem problem;

  llvm::ArrayRef<EpilogueRoot> getRoots() const { return roots; }
  int64_t flops() const { return problem.flops; }
  mlir::Type elementType() const {
    return mlir::getElementTypeOrSelf(mlir::linalg::GenericOp(generic).getResultTypes().front());
  }

protected:
  explicit DotMatch(mlir::linalg::GenericOp generic)
      : generic(generic), space(generic.getContext()) {}
};

/// One of rows by columns, of operands of the type of the sums.
struct SkinnyMatmulMatch : DotMatch {
  static llvm::FailureOr<SkinnyMatmulMatch> of(mlir::linalg::GenericOp generic,
                                               mlir::func::FuncOp kernel, const TargetInfo &target);

private:
  explicit SkinnyMatmulMatch(DotMatch match) : DotMatch(std::move(match)) {}
};

} // namespace weft

#endif
