// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A contraction for the register tile: loop dims by role, and positions of its operands as linear
// functions of them.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONSHAPE_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONSHAPE_H

#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

struct ContractionOperand {
  mlir::Value memory; ///< a kernel argument
  mlir::AffineExpr position;
  llvm::SmallVector<unsigned> free; ///< dims of this operand and the result only
};

/// A blocked lane dim whose last block is padded.
struct PaddedLanes {
  mlir::AffineExpr block; ///< index of the block
  unsigned lane;
  int64_t blocks;
  int64_t inLast; ///< valid lanes of the last block
};

struct ContractionShape {
  /// The operands, told apart by which has the innermost dim of the result.
  struct Sides {
    const ContractionOperand &inner; ///< has it
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

  /// Describes `generic`, whose loops become dims of `space`: two if an operand divides a loop, as
  /// after a reshape; one for several loops if all operands traverse them as one. Fails unless it
  /// sums, in f32 or f64, products of floats no wider than that, read from kernel arguments with
  /// constant strides.
  static llvm::FailureOr<ContractionShape> match(mlir::linalg::GenericOp generic,
                                                 IndexSpace &space);

  /// Nothing unless exactly one operand has the result's innermost dim.
  std::optional<Sides> sides(const IndexSpace &space) const;

  /// The batch dim that is contiguous with the innermost dim in the result and the inner side, as
  /// the groups of a channels-last convolution; nothing if there is none.
  std::optional<unsigned> groupsAround(const Sides &sides, const IndexSpace &space) const;
  /// Merges `groups` and the innermost dim into one dim, whose number is returned; the position of
  /// the outer side divides it by the size of a group.
  unsigned joinGroups(unsigned groups, const Sides &sides, IndexSpace &space);

  /// Counts valid elements only, not padding.
  int64_t flops(const IndexSpace &space) const;

private:
  /// A dim of the space: a loop of `generic`, a part of one, or several merged.
  struct Loop {
    unsigned dim;
    bool reduces;
  };

  void split(llvm::SmallVectorImpl<Loop> &loops, IndexSpace &space);
  void merge(llvm::SmallVectorImpl<Loop> &loops, IndexSpace &space);
  /// Substitutes expressions for dims in all positions and indices.
  void replace(llvm::ArrayRef<std::pair<unsigned, mlir::AffineExpr>> to, IndexSpace &space);
  /// Replaces both dims by one new dim of the space that iterates over their product.
  mlir::AffineExpr join(unsigned outer, unsigned inner, IndexSpace &space);
};

} // namespace weft

#endif
