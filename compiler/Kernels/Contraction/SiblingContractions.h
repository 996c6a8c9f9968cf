// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels with several independent contractions (Q, K and V): each root depends on exactly one.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_SIBLINGCONTRACTIONS_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_SIBLINGCONTRACTIONS_H

#include "compiler/Kernels/Emission/BufferReuse.h"
#include "compiler/Kernels/Emission/Epilogue.h"
#include "compiler/Kernels/Emission/StoreTarget.h"

namespace weft {

/// Every contraction of `kernel`, a tensor form, as a MatchT: of(generic, kernel, target), flops()
/// and getRoots(). Fails if one does not match, or a root depends on none or on several.
template <typename MatchT>
llvm::FailureOr<llvm::SmallVector<MatchT, 0>> matchSiblings(mlir::func::FuncOp kernel,
                                                            const TargetInfo &target) {
  llvm::SmallVector<MatchT, 0> matches;
  llvm::SmallVector<bool> covered(kernel.getNumResults(), false);
  for (auto generic : kernel.getOps<mlir::linalg::GenericOp>()) {
    if (!isReduction(generic))
      continue;
    llvm::FailureOr<MatchT> match = MatchT::of(generic, kernel, target);
    if (llvm::failed(match))
      return llvm::failure();
    for (const EpilogueRoot &root : match->getRoots()) {
      if (covered[root.number])
        return llvm::failure();
      covered[root.number] = true;
    }
    matches.push_back(std::move(*match));
  }
  if (matches.empty() || llvm::is_contained(covered, false))
    return llvm::failure();
  return matches;
}

/// Multiply-adds of siblings, two each.
template <typename Matches> int64_t flopsOf(const Matches &matches) {
  int64_t flops = 0;
  for (const auto &match : matches)
    flops += match.flops();
  return flops;
}

/// Emits every contraction of `kernel` with an EmitterT of its own, constructed from the kernel,
/// its EmitterT::Match and its part of the schedule: verify(), emit() and, valid after emit(),
/// storesOnce(): each element of its roots is stored once, and nothing else to their memory.
template <typename EmitterT> llvm::LogicalResult emitSiblingContractions(KernelFunction &kernel) {
  auto matches = matchSiblings<typename EmitterT::Match>(kernel.source, kernel.target);
  llvm::ArrayRef<mlir::DictionaryAttr> parts = kernel.schedule.getParts();
  if (llvm::failed(matches))
    return llvm::failure();
  if (parts.size() != matches->size())
    return kernel.refuse() << "expected a schedule of " << matches->size()
                           << " contractions, found one of " << parts.size();
  int64_t flops = flopsOf(*matches);
  llvm::SmallVector<std::unique_ptr<EmitterT>> emitters;
  for (auto [match, part] : llvm::zip_equal(*matches, parts)) {
    emitters.push_back(std::make_unique<EmitterT>(kernel, std::move(match), part));
    if (llvm::Error error = emitters.back()->verify())
      return kernel.refuse() << llvm::toString(std::move(error));
  }
  for (const auto &emitter : emitters)
    emitter->emit();
  emitBorders(kernel);
  if (llvm::all_of(emitters, [](const auto &emitter) { return emitter->storesOnce(); }))
    markInPlace(kernel);
  kernel.setWork(flops);
  return llvm::success();
}

} // namespace weft

#endif
