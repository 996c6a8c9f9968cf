// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What kernels have in common that hold rows of features on one side and blocks of tokens on the
// other: one target in float32, in squares of as many tokens as a vector has lanes.
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
  /// A dim of `extent`, and its number.
  mlir::AffineExpr loopOver(int64_t extent, unsigned &dim);
  bool isRows() const; ///< of float32
  /// Elementwise reads with vectors along the tokens, and along the features.
  int64_t stridedAlongTokens() const, stridedAlongFeatures() const;
  void emitReductions();
  /// `body` for whole vectors of features, and for what they leave over.
  void forEachVector(llvm::function_ref<void(mlir::Value first, int64_t count)> body);
  void store(const Emitted &value);

  KernelFunction &kernel;
  const StoreTarget &target;
  IndexSpace space;
  ElementEmitter point;
  AccessAnalysis demand;
  Index index;
  int64_t width;
  int64_t points = 0; ///< rows
  unsigned lane = 0, feature = 0;

private:
  ReducedValues reduced;
};

/// A kernel that stores one thing, by an EmitterT of that. Fails where it stores more, or that does
/// not match.
template <typename EmitterT> llvm::LogicalResult emitTransposed(KernelFunction &kernel) {
  llvm::SmallVector<StoreTarget> targets = storeTargets(kernel);
  if (targets.size() != 1)
    return llvm::failure();
  EmitterT emitter(kernel, targets.front());
  if (llvm::failed(emitter.match()))
    return llvm::failure();
  WorkEstimate work(kernel);
  emitter.emit(work);
  emitBorders(kernel, work.serial);
  kernel.setWork(emitter.flops(), work.serial);
  kernel.setSchedule({{"lanes", kernel.target.lanes(32)}, {"transposed", 1}});
  return llvm::success();
}

} // namespace weft

#endif
