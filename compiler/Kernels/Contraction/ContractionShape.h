// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a contraction looks like to the register tile: loop dims by role, and where its
// operands lie as linear functions of them.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONSHAPE_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONSHAPE_H

#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

struct ContractionOperand {
  mlir::Value memory; ///< a kernel argument
  mlir::AffineExpr position;
  llvm::SmallVector<unsigned> free; ///< dims in this operand and the result alone
};

/// Lanes of a dim in blocks, of which the last holds fewer.
struct PaddedLanes {
  mlir::AffineExpr block; ///< the number of the block
  unsigned lane;
  int64_t blocks;
  int64_t inLast; ///< lanes of the last block that count
};

struct ContractionShape {
  /// The operands by which of them holds the innermost dim of the result.
  struct Sides {
    const ContractionOperand &inner; ///< holds it
    const ContractionOperand &outer;
    unsigned innermost;
  };

  mlir::linalg::GenericOp generic;
  ContractionOperand lhs, rhs;
  Index resultIndex; ///< of the generic's result
  mlir::AffineExpr resultPosition;
  llvm::SmallVector<unsigned> batch; ///< in both operands and the result
  llvm::SmallVector<unsigned> reduced;
  std::optional<PaddedLanes> padded;

  /// Describe `generic`, whose loops become dims of `space`: two where an operand divides a
  /// loop, as behind a reshape; one where all operands walk several as one. Fails unless it sums,
  /// in f32 or f64, products of floats no wider than that, read from kernel arguments with constant
  /// strides.
  static llvm::FailureOr<ContractionShape> match(mlir::linalg::GenericOp generic,
                                                 IndexSpace &space);

  /// Nothing when no operand holds the result's innermost dim alone.
  std::optional<Sides> sides(const IndexSpace &space) const;

  /// The batch dim that the result and the inner side walk as one with the innermost dim,
  /// as the groups of a convolution with channels last; nothing where there is none.
  std::optional<unsigned> groupsAround(const Sides &sides, const IndexSpace &space) const;
  /// One dim in place of `groups` and the innermost dim, whose number is returned; the
  /// position of the outer side divides it by the size of a group.
  unsigned joinGroups(unsigned groups, const Sides &sides, IndexSpace &space);

  /// Of all elements that are somebody's.
  int64_t flops(const IndexSpace &space) const;

private:
  /// A dim of the space that is a loop of `generic`, or a part or several of them.
  struct Loop {
    unsigned dim;
    bool reduces;
  };

  void split(llvm::SmallVectorImpl<Loop> &loops, IndexSpace &space);
  void merge(llvm::SmallVectorImpl<Loop> &loops, IndexSpace &space);
  /// Expressions in place of dims, everywhere.
  void replace(llvm::ArrayRef<std::pair<unsigned, mlir::AffineExpr>> to, IndexSpace &space);
  /// One new dim of the space that counts through both dims, wherever these stand.
  mlir::AffineExpr join(unsigned outer, unsigned inner, IndexSpace &space);
};

} // namespace weft

#endif
