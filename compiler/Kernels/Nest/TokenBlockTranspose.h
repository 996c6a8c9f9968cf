// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Common parts of kernels between row-major rows and token blocks: a single float32 target,
// transposed in squares of one vector of tokens.
#ifndef WEFT_COMPILER_KERNELS_NEST_TOKENBLOCKTRANSPOSE_H
#define WEFT_COMPILER_KERNELS_NEST_TOKENBLOCKTRANSPOSE_H

#include "compiler/Kernels/Emission/StoreTarget.h"
#include "compiler/Kernels/Emission/WorkEstimate.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"
#include "compiler/Kernels/Nest/Reductions.h"

namespace weft {

class TokenBlockTranspose : protected IndexArithmetic {
public:
  TokenBlockTranspose(KernelFunction &kernel, const StoreTarget &target);
  TokenBlockTranspose(const TokenBlockTranspose &) = delete;
  int64_t flops() const;

protected:
  /// A new dim of `extent` and, in `dim`, its number.
  mlir::AffineExpr loopOver(int64_t extent, unsigned &dim);
  bool isRows() const; ///< of float32, rank at least 2
  /// Number of strided accesses with vectors along the tokens, and along the features.
  int64_t stridedAlongTokens() const, stridedAlongFeatures() const;
  void emitReductions();
  /// Emits `body` for whole vectors of features, and for the remainder.
  void forEachVector(llvm::function_ref<void(mlir::Value first, int64_t count)> body);
  void store(const Emitted &value);

  KernelFunction &kernel;
  const StoreTarget &target;
  IndexSpace space;
  ElementEmitter point;
  AccessAnalysis demand;
  Index index;
  int64_t width;
  int64_t points = 0; ///< number of rows
  unsigned lane = 0, feature = 0;

private:
  ReducedValues reduced;
};

/// Whether `kernel` has a single target, which an EmitterT matches.
template <typename EmitterT> bool suitsTransposed(KernelFunction &kernel) {
  llvm::SmallVector<StoreTarget> targets = storeTargets(kernel);
  return targets.size() == 1 && llvm::succeeded(EmitterT(kernel, targets.front()).match());
}

/// Emits a kernel with a single target by an EmitterT. Fails if there are several, or it does not
/// match.
template <typename EmitterT> llvm::LogicalResult emitTransposed(KernelFunction &kernel) {
  llvm::SmallVector<StoreTarget> targets = storeTargets(kernel);
  if (targets.size() != 1)
    return llvm::failure();
  EmitterT emitter(kernel, targets.front());
  if (llvm::failed(emitter.match()))
    return llvm::failure();
  emitter.emit(WorkEstimate(kernel.source));
  emitBorders(kernel);
  kernel.setWork(emitter.flops());
  return llvm::success();
}

} // namespace weft

#endif
