// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a nest computes and stores: a root of its kernel, one part of a root that is a
// concatenation, or what lies between the borders of a root that is padded.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_STORETARGET_H
#define WEFT_COMPILER_KERNELS_EMISSION_STORETARGET_H

#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

struct StoreTarget {
  mlir::Value tensor;                ///< the values
  unsigned root;                     ///< number of the kernel's root that they go into
  llvm::SmallVector<int64_t> offset; ///< of the tensor's first element in the root; rank of both

  /// Where the element of `tensor` at `index` lies in the root.
  Index rootIndex(llvm::ArrayRef<mlir::AffineExpr> index) const;
};

/// The targets of `kernel`, which cover its roots, but for borders, without overlap. A
/// concatenation is stored part by part: an element of the whole would ask of every part whether it
/// lies there.
llvm::SmallVector<StoreTarget> storeTargets(const KernelFunction &kernel);

/// Whether a nest stores what is padded between borders that are stored apart.
bool storesBorders(const KernelFunction &kernel, mlir::tensor::PadOp pad);

/// Stores the borders of the roots that are padded, of those that `stores` says. Serial: thread 0
/// stores them all.
void emitBorders(
    KernelFunction &kernel, bool serial,
    llvm::function_ref<bool(mlir::tensor::PadOp)> stores = [](auto) { return true; });

} // namespace weft

#endif
