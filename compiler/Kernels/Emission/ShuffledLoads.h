// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vector loads of permuted memory (reversed, strided, or repeating runs): short contiguous loads
// combined by shuffles.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_SHUFFLEDLOADS_H
#define WEFT_COMPILER_KERNELS_EMISSION_SHUFFLEDLOADS_H

#include "compiler/Kernels/Emission/ElementEmitter.h"

namespace weft {

/// Loads of `size` elements, a power of two, at offsets `starts` from the first lane's element.
/// Lane i takes element `places[i]` of their concatenation. All loads stay between elements that
/// lanes read.
struct ShuffledLoads {
  llvm::SmallVector<int64_t> starts;
  llvm::SmallVector<int64_t> places;
  int64_t size = 1;

  /// The loads for the first `count` lanes at `position`; nothing if the lanes' offsets are not
  /// constant, or if more than a few loads were needed.
  static std::optional<ShuffledLoads> of(const IndexSpace &space, const Lanes &lanes, int64_t count,
                                         mlir::AffineExpr position);

  /// Loads the lanes' elements from flat `memory`; the first lane reads at `address`.
  mlir::Value load(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memory,
                   mlir::Value address) const;
};

} // namespace weft

#endif
