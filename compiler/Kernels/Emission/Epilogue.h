// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementwise ops fused into the store of a contraction or attention.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_EPILOGUE_H
#define WEFT_COMPILER_KERNELS_EMISSION_EPILOGUE_H

#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

/// A root of the kernel and its index at a given index of the followed value. That element is in
/// the root only within bounds, if slices on the way drop padding.
struct EpilogueRoot {
  unsigned number;
  Index index;
  llvm::SmallVector<Bound> within;
};

/// Those of the `roots` of a kernel that depend elementwise on `value` at `index`, found by
/// following its users. Fails if a user is not elementwise on the whole value.
llvm::FailureOr<llvm::SmallVector<EpilogueRoot>>
epilogueRoots(mlir::ValueRange roots, mlir::Value value, const Index &index, IndexSpace &space);

/// The tensors that stand for `product` in its epilogue: itself and, if only a bias is added to it,
/// its rounding to half precision, so that the bias is added to the float32 sum and rounded once.
llvm::SmallVector<mlir::Value, 2> unroundedForms(KernelFunction &kernel, mlir::Value product);

/// Stores `roots` of `kernel` at the point, with value `sums` for each of `products`.
void storeRoots(KernelFunction &kernel, ElementEmitter &point, llvm::ArrayRef<EpilogueRoot> roots,
                llvm::ArrayRef<mlir::Value> products, const Emitted &sums);

/// Whether the body of `generic` calls transcendental functions.
bool isTranscendental(mlir::linalg::GenericOp generic);

/// Whether `root` depends on `contraction` through transcendental functions.
bool isTranscendental(mlir::Value root, mlir::linalg::GenericOp contraction);

} // namespace weft

#endif
