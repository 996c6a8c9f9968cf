// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef WEFT_COMPILER_KERNELS_ONETARGET_H
#define WEFT_COMPILER_KERNELS_ONETARGET_H

#include "compiler/Kernels/PointWork.h"
#include "compiler/Kernels/StoreTarget.h"

namespace weft {

/// A kernel that stores one thing, by an EmitterT of that: match(), emit(work) and flops(). Fails
/// where it stores more, or that does not match.
template <typename EmitterT> llvm::LogicalResult emitOneTarget(KernelFunction &kernel) {
  llvm::SmallVector<StoreTarget> targets = storeTargets(kernel);
  if (targets.size() != 1)
    return llvm::failure();
  EmitterT emitter(kernel, targets.front());
  if (llvm::failed(emitter.match()))
    return llvm::failure();
  PointWork work(kernel);
  emitter.emit(work);
  emitBorders(kernel, work.serial);
  kernel.setWork(emitter.flops(), work.serial);
  kernel.setSchedule({{"lanes", kernel.target.lanes(32)}, {"transposed", 1}});
  return llvm::success();
}

} // namespace weft

#endif
