// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A contraction of a kernel as the register tile computes it: loops by role, epilogue, and what its
// schedule is chosen from.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONMATCH_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONMATCH_H

#include "compiler/Kernels/Contraction/ContractionProblem.h"
#include "compiler/Kernels/Contraction/ContractionRoles.h"
#include "compiler/Kernels/Emission/Epilogue.h"

namespace weft {

struct ContractionMatch {
  /// Fails unless `generic`, of the tensor form `kernel`, has a register tile and all that depends
  /// on it does so elementwise.
  static llvm::FailureOr<ContractionMatch> of(mlir::linalg::GenericOp generic,
                                              mlir::func::FuncOp kernel, const TargetInfo &target);

  mlir::linalg::GenericOp generic;
  IndexSpace space;
  ContractionShape shape;
  ContractionRoles roles;
  llvm::SmallVector<EpilogueRoot> roots;
  std::optional<unsigned> spillRoot; ///< the one of `roots` to whose memory sums can be spilled
  ContractionProblem problem;

  llvm::ArrayRef<EpilogueRoot> getRoots() const { return roots; }
  int64_t flops() const { return problem.flops; }

private:
  explicit ContractionMatch(mlir::linalg::GenericOp generic)
      : generic(generic), space(generic.getContext()) {}
};

} // namespace weft

#endif
