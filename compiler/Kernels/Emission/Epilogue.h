// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is computed elementwise from a contraction's or an attention's result.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_EPILOGUE_H
#define WEFT_COMPILER_KERNELS_EMISSION_EPILOGUE_H

#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

/// A root of the kernel and its index where the followed value has a given one, which is part of
/// the root only within some bounds: slices on the way drop padding.
struct EpilogueRoot {
  unsigned number;
  Index index;
  llvm::SmallVector<Bound> within;
};

/// The roots of `kernel` that stand elementwise on `value` at `index`, found by following
/// its users. Fails when a user is not elementwise on the whole value.
llvm::FailureOr<llvm::SmallVector<EpilogueRoot>>
epilogueRoots(KernelFunction &kernel, mlir::Value value, const Index &index, IndexSpace &space);

/// The tensors that stand for `product` in its epilogue: itself, and what rounds it to half
/// precision if nothing but a bias is added to that, so that it is added to the sum and rounded
/// once.
llvm::SmallVector<mlir::Value, 2> unroundedForms(KernelFunction &kernel, mlir::Value product);

/// Stores `roots` of `kernel` at the point, where each of `products` has the value `sums`.
void storeRoots(KernelFunction &kernel, ElementEmitter &point, llvm::ArrayRef<EpilogueRoot> roots,
                llvm::ArrayRef<mlir::Value> products, const Emitted &sums);

/// Whether the body of `generic` calls functions of many instructions.
bool isTranscendental(mlir::linalg::GenericOp generic);

/// Whether `root` stands on `contraction` through such functions.
bool isTranscendental(mlir::Value root, mlir::linalg::GenericOp contraction);

} // namespace weft

#endif
