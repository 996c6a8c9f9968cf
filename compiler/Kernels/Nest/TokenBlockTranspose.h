// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Common parts of kernels between row-major rows and token blocks: a single float32 target,
// transposed in squares of one vector of tokens.
#ifndef WEFT_COMPILER_KERNELS_NEST_TOKENBLOCKTRANSPOSE_H
#define WEFT_COMPILER_KERNELS_NEST_TOKENBLOCKTRANSPOSE_H

#include "compiler/Kernels/Emission/StoreTarget.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"
#include "compiler/Kernels/Nest/Reductions.h"
#include "compiler/Kernels/Nest/TransposeProblem.h"
#include "compiler/Kernels/Nest/TransposeSchedule.h"

namespace weft {

class TokenBlockTranspose : protected IndexArithmetic {
public:
  TokenBlockTranspose(KernelFunction &kernel, const StoreTarget &target);
  TokenBlockTranspose(const TokenBlockTranspose &) = delete;
  /// Fails, with a diagnostic, on what cannot be honoured.
  llvm::LogicalResult read(mlir::DictionaryAttr part);
  virtual TransposeProblem problem() const = 0;
  int64_t flops() const;

protected:
  virtual int64_t cellCount() const = 0;
  /// Whether reductions are emitted without lanes.
  virtual bool rowByRow() const = 0;
  ~TokenBlockTranspose() = default;
  /// A new dim of `extent` and, in `dim`, its number.
  mlir::AffineExpr loopOver(int64_t extent, unsigned &dim);
  bool isRows() const; ///< of float32, rank at least 2
  /// Number of strided accesses with vectors along the tokens, and along the features.
  int64_t stridedAlongTokens() const, stridedAlongFeatures() const;
  void emitReductions();
  /// Emits `body` for cells with a row that counts. known: the dims that are set there, besides
  /// `lane`, which is set to 0.
  void emitIfCounting(llvm::ArrayRef<unsigned> known, llvm::function_ref<void()> body);
  /// Emits `body` for whole vectors of features, and for the remainder.
  void forEachVector(llvm::function_ref<void(mlir::Value first, int64_t count)> body);
  void store(const Emitted &value);

  KernelFunction &kernel;
  const StoreTarget &target;
  IndexSpace space;
  ElementEmitter point;
  AccessAnalysis demand;
  Index index;
  TransposeSchedule schedule;
  int64_t width;
  int64_t points = 0; ///< number of rows
  unsigned lane = 0, feature = 0;

private:
  ReducedValues reduced;
};

/// What is transposed, if `kernel` has a single target, which an EmitterT matches.
template <typename EmitterT>
std::optional<TransposeProblem> matchTransposed(KernelFunction &kernel, bool interior) {
  llvm::SmallVector<int64_t> interiors(interior ? 1 : 0, 0);
  llvm::SmallVector<StoreTarget> targets = storeTargets(kernel.source, interiors);
  if (targets.size() != 1)
    return std::nullopt;
  EmitterT emitter(kernel, targets.front());
  if (llvm::failed(emitter.match()))
    return std::nullopt;
  return emitter.problem();
}

/// Emits a kernel with a single target by an EmitterT. Fails if there are several, or it does not
/// match.
template <typename EmitterT> llvm::LogicalResult emitTransposed(KernelFunction &kernel) {
  mlir::DictionaryAttr part = kernel.schedule.getParts().front();
  llvm::SmallVector<int64_t> interiors;
  if (readFields<TransposeSchedule>(part).interior)
    interiors.push_back(0);
  if (llvm::Error error = verifyInteriors(kernel.source, interiors))
    return kernel.refuse() << llvm::toString(std::move(error));
  llvm::SmallVector<StoreTarget> targets = storeTargets(kernel.source, interiors);
  if (targets.size() != 1)
    return llvm::failure();
  EmitterT emitter(kernel, targets.front());
  if (llvm::failed(emitter.match()) || llvm::failed(emitter.read(part)))
    return llvm::failure();
  emitter.emit();
  emitBorders(kernel, [&](unsigned) { return !interiors.empty(); });
  kernel.setWork(emitter.flops());
  return llvm::success();
}

} // namespace weft

#endif
