// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The layouts that the linear layers of one function want, from shapes and the vector registers
// alone.
#ifndef WEFT_COMPILER_TRANSFORMS_LINEARLAYOUTS_H
#define WEFT_COMPILER_TRANSFORMS_LINEARLAYOUTS_H

#include "compiler/Graph/Graph.h"

namespace weft {

class LinearLayouts {
public:
  /// `lanes`: of a vector. `registers`: for vectors. `inByOut`: most weights lie as (in, out).
  /// Those of float32 and float64 are read as they lie, as vectors of columns beside row-major
  /// tokens; others are copied line by line.
  LinearLayouts(int64_t lanes, int64_t registers, bool inByOut)
      : lanes(lanes), registers(registers), inByOut(inByOut) {}

  /// Feature-major in blocks of tokens for a (..., tokens, features) tensor, null when its
  /// tokens do not fill a vector or are better row-major.
  LayoutAttr tokenBlocks(mlir::RankedTensorType type) const;

  /// Of a contraction of (..., tokens, features) in such blocks, against one without padding.
  double workInTokenBlocks(mlir::RankedTensorType type) const;

  /// Whether there are enough (..., tokens, features) row-major tokens for packed weights, which
  /// `readers` contractions of about as many tokens read.
  bool suitPackedWeights(mlir::RankedTensorType type, int64_t readers) const;

  /// Whether a linear layer of (..., tokens, features) row-major tokens, alone in its program, is
  /// better computed by dot products along the features: few tokens leave much of a block to
  /// padding, and nothing but this layer would pay for the relayouts.
  bool dotProductsCostLess(mlir::RankedTensorType type) const;

  /// Blocks of columns for a matrix that is summed along the other dim: vectors run along a
  /// block, as (columns / block, rows, block) in memory.
  LayoutAttr packed(mlir::RankedTensorType matrix, int64_t columnDim) const;

private:
  /// Whether contractions of `type` read columns of their weights as vectors.
  bool readsColumns(mlir::RankedTensorType type) const {
    mlir::Type element = type.getElementType();
    return inByOut && (element.isF32() || element.isF64());
  }

  struct Block {
    int64_t size;
    double cost; ///< of all tokens, where one that leaves no padding behind costs 1
  };
  Block chooseBlock(int64_t tokens, bool byLines) const;

  int64_t lanes, registers;
  bool inByOut;
};

/// Whether `type` is a (..., tokens, features) tensor in blocks of tokens, in any order.
bool isInTokenBlocks(mlir::RankedTensorType type);

} // namespace weft

#endif
