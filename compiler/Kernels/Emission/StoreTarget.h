// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a nest computes and stores: a root of its kernel, one operand of a root that is a
// concatenation, or the interior of a padded root.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_STORETARGET_H
#define WEFT_COMPILER_KERNELS_EMISSION_STORETARGET_H

#include "compiler/Kernels/Emission/KernelFunction.h"
#include "llvm/Support/Error.h"

namespace weft {

struct StoreTarget {
  mlir::Value tensor;                ///< the values
  unsigned root;                     ///< number of the root that it is stored to
  llvm::SmallVector<int64_t> offset; ///< of the tensor's first element in the root; rank of both

  /// The index in the root of the element of `tensor` at `index`.
  Index rootIndex(llvm::ArrayRef<mlir::AffineExpr> index) const;
};

/// Targets that cover the roots of `kernel`, a tensor form, without overlap, except for padding.
/// Concatenations are stored operand by operand: otherwise each element would have to test which
/// operand it is from. Of the targets numbered `interiors`, padded roots, only the interior is
/// stored; their numbers are those without.
llvm::SmallVector<StoreTarget> storeTargets(mlir::func::FuncOp kernel,
                                            llvm::ArrayRef<int64_t> interiors);

/// The padding of a target of storeTargets(kernel, {}); null if it is no padded root.
mlir::tensor::PadOp paddingOf(const StoreTarget &target, mlir::func::FuncOp kernel);

/// Whether padding can only be stored separately: reductions and scans are not evaluated at padded
/// elements.
bool needsInteriors(mlir::func::FuncOp kernel);

/// Whether these targets can be stored so: the error says which cannot.
llvm::Error verifyInteriors(mlir::func::FuncOp kernel, llvm::ArrayRef<int64_t> interiors);

/// Stores the padding of those padded roots for whose number `stores` holds. Serial: thread 0
/// stores all.
void emitBorders(
    KernelFunction &kernel,
    llvm::function_ref<bool(unsigned)> stores = [](unsigned) { return true; });

} // namespace weft

#endif
