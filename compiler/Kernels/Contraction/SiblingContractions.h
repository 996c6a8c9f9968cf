// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels with several independent contractions (Q, K and V): each root depends on exactly one.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_SIBLINGCONTRACTIONS_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_SIBLINGCONTRACTIONS_H

#include "compiler/Kernels/Emission/BufferReuse.h"
#include "compiler/Kernels/Emission/Epilogue.h"
#include "compiler/Kernels/Emission/StoreTarget.h"

namespace weft {

/// Emits every contraction of `kernel` with an `Emitter` of its own: match(), flops(), getRoots(),
/// emit(serial), getSchedule() and, valid after emit(), storesOnce(): each element of its roots is
/// stored once, and nothing else to their memory. Fails if a contraction does not match or a root
/// depends on several. Below `smallFlops` in all, a serial kernel stays on thread 0: a barrier and
/// cold caches would cost more than other cores gain.
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
