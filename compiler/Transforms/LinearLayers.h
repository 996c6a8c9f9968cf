// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The linear layers of a function, and whether their weights are packed or read in place.
#ifndef WEFT_COMPILER_TRANSFORMS_LINEARLAYERS_H
#define WEFT_COMPILER_TRANSFORMS_LINEARLAYERS_H

#include "compiler/Transforms/LinearLayouts.h"

namespace weft {

struct LinearLayer {
  mlir::Value tokens; ///< (..., tokens, features)
  mlir::ValueRange weights;
  bool inByOut; ///< whether weights are stored, or will be copied, as (in, out)

  double rows() const;
  double weightElements() const;
};

llvm::SmallVector<LinearLayer> linearLayers(mlir::func::FuncOp function);

/// The linear layers of which no other one, nor attention, depends on or is depended on: nothing
/// shares the relayouts of their tokens to blocks and back.
llvm::DenseSet<mlir::Operation *> linearLayersApart(mlir::func::FuncOp function);

/// A value that contractions read in its original layout: an argument, or one weight after a chain
/// of unary ops.
bool isWeight(mlir::Value value);

/// A converted weight: it is copied anyway, so the copy may have any layout.
bool isCopiedWeight(mlir::Value value);

/// Whether a weight that is reduced along `rhsContract` is stored as (in, out).
bool isInByOut(llvm::ArrayRef<int64_t> rhsContract);
/// Whether most of the work is with such weights.
bool lieMostlyInByOut(llvm::ArrayRef<LinearLayer> linears);

/// Whether all weights of linear layers may be packed when they are bound, in memory that is worth
/// it.
bool mayPackWeights(mlir::func::FuncOp function);

/// Whether calls take less time with packed weights and row-major tokens than with weights in place
/// and tokens in blocks, which are padded, and relaid out where other ops need them row-major:
/// `movedElements` more in each call. Packed weights cost a copy, loads of panels that no L2 keeps,
/// and vectors of attention that no longer run along blocks: `attentionInBlocks` multiply-adds.
bool packingCostsLess(mlir::func::FuncOp function, const LinearLayouts &layouts, int64_t l2Bytes,
                      double movedElements, double attentionInBlocks);

/// Multiply-adds of the attention in a call that has its tokens in blocks.
double attentionInTokenBlocks(mlir::func::FuncOp function);

} // namespace weft

#endif
