// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel may hold several contractions side by side (Q, K and V): each root stands on one.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_SIBLINGCONTRACTIONS_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_SIBLINGCONTRACTIONS_H

#include "compiler/Kernels/Emission/BufferReuse.h"
#include "compiler/Kernels/Emission/Epilogue.h"
#include "compiler/Kernels/Emission/StoreTarget.h"

namespace weft {

/// Emit every contraction of `kernel` by an `Emitter` of its own, which has match(), flops(),
/// getRoots(), emit(serial), getSchedule() and, behind emit(), storesOnce(), true where every
/// element of its roots is stored once and nothing else in their memory. Fails when one does not
/// match or a root does not stand on exactly one. Less than `smallFlops` in all is left to thread
/// 0, unless it is divided already: a barrier and cold caches would cost more than the other cores
/// give.
template <typename Emitter>
llvm::LogicalResult emitSiblingContractions(KernelFunction &kernel, int64_t smallFlops) {
  llvm::SmallVector<std::unique_ptr<Emitter>> emitters;
  llvm::SmallVector<bool> covered(kernel.roots.size(), false);
  int64_t flops = 0;
  for (auto generic : kernel.source.getOps<mlir::linalg::GenericOp>()) {
    if (!isReduction(generic))
      continue;
    emitters.push_back(std::make_unique<Emitter>(kernel, generic));
    if (failed(emitters.back()->match()))
      return llvm::failure();
    flops += emitters.back()->flops();
    for (const EpilogueRoot &root : emitters.back()->getRoots()) {
      if (covered[root.number])
        return llvm::failure();
      covered[root.number] = true;
    }
  }
  if (emitters.empty() || llvm::is_contained(covered, false))
    return llvm::failure();
  bool serial = kernel.isSerial(flops < smallFlops);
  for (const auto &emitter : emitters)
    emitter->emit(serial);
  emitBorders(kernel, serial);
  if (llvm::all_of(emitters, [](const auto &emitter) { return emitter->storesOnce(); }))
    markInPlace(kernel);
  kernel.setWork(flops, serial);
  kernel.setSchedule(emitters.front()->getSchedule());
  return llvm::success();
}

} // namespace weft

#endif
