// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The preferred layouts of a function's linear layers, by shapes and vector registers.
#ifndef WEFT_COMPILER_TRANSFORMS_LINEARLAYOUTS_H
#define WEFT_COMPILER_TRANSFORMS_LINEARLAYOUTS_H

#include "compiler/Graph/Graph.h"

namespace weft {

class LinearLayouts {
public:
  /// `lanes`: of a vector. `registers`: vector registers. `inByOut`: most weights are stored as
  /// (in, out). Of these, float32 and float64 are read in place, as vectors of columns with
  /// row-major tokens; others are packed by cache lines.
  LinearLayouts(int64_t lanes, int64_t registers, bool inByOut)
      : lanes(lanes), registers(registers), inByOut(inByOut) {}

  /// Feature-major token blocks for a (..., tokens, features) tensor; null if its tokens do not
  /// fill a vector or are better row-major.
  LayoutAttr tokenBlocks(mlir::RankedTensorType type) const;

  /// Work of a contraction of (..., tokens, features) with a weight in place that is read by
  /// `readers` contractions, in token blocks or row-major, relative to one with packed weights.
  double workInPlace(mlir::RankedTensorType type, int64_t readers) const;

  /// Multiply-adds in the time that a relayout needs for one element.
  double costOfMoving() const;

  /// Whether there are enough row-major tokens (..., tokens, features) for packed weights that are
  /// read by `readers` contractions of this size.
  bool suitPackedWeights(mlir::RankedTensorType type, int64_t readers) const;

  /// Whether a linear layer of row-major tokens (..., tokens, features) that shares its relayouts
  /// with no other is better computed by dot products: blocks of few tokens would be mostly
  /// padding, and one layer does not amortize the relayouts.
  bool dotProductsCostLess(mlir::RankedTensorType type) const;

  /// Blocks of columns of a matrix that is reduced along its other dim, stored as (columns / block,
  /// rows, block): vectors run along a block.
  LayoutAttr packed(mlir::RankedTensorType matrix, int64_t columnDim) const;

private:
  /// Work in token blocks, relative to blocks without padding.
  double workInTokenBlocks(mlir::RankedTensorType type) const;

  /// Whether contractions of `type` read columns of their weights as vectors.
  bool readsColumns(mlir::RankedTensorType type) const {
    mlir::Type element = type.getElementType();
    return inByOut && (element.isF32() || element.isF64());
  }

  struct Block {
    int64_t size;
    double cost; ///< for all tokens, where a token of a full block costs 1
  };
  Block chooseBlock(int64_t tokens, bool byLines) const;

  int64_t lanes, registers;
  bool inByOut;
};

/// Whether `type` is a (..., tokens, features) tensor in blocks of tokens, in any order.
bool isInTokenBlocks(mlir::RankedTensorType type);

} // namespace weft

#endif
