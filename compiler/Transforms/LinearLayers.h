// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The linear layers of a function, and whether their weights are packed or read in place.
#ifndef WEFT_COMPILER_TRANSFORMS_LINEARLAYERS_H
#define WEFT_COMPILER_TRANSFORMS_LINEARLAYERS_H

#include "compiler/Transforms/LinearLayouts.h"

namespace weft {

struct LinearLayer {
  mlir::RankedTensorType tokens;
  mlir::ValueRange weights;
  bool inByOut; ///< whether weights are stored, or will be copied, as (in, out)

  double rows() const;
  double weightElements() const;
};

llvm::SmallVector<LinearLayer> linearLayers(mlir::func::FuncOp function);

/// A value that contractions read in its original layout: an argument, or one weight after a chain
/// of unary ops.
bool isWeight(mlir::Value value);

/// A converted weight: it is copied anyway, so the copy may have any layout.
bool isCopiedWeight(mlir::Value value);

/// Whether a weight that is reduced along `rhsContract` is stored as (in, out).
bool isInByOut(llvm::ArrayRef<int64_t> rhsContract);
/// Whether most of the work is with such weights.
bool lieMostlyInByOut(llvm::ArrayRef<LinearLayer> linears);

/// Whether a single linear layer would have to amortize the relayouts of tokens to blocks and back.
bool hasOneLinear(mlir::func::FuncOp function);

/// Whether weights are packed: if all are small, copies stay in cache, and cost less than relayouts
/// of tokens, a tenth of a small contraction, unless attention needs token blocks; or if token
/// blocks would be padded. A single layer has the caches to itself.
bool packsWeights(mlir::func::FuncOp function, const LinearLayouts &layouts, bool isOneLinear);

} // namespace weft

#endif
