// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lanes that read memory in another order than it lies in, backwards, by strides or in runs that
// repeat: short pieces of memory that a shuffle brings in order.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_SHUFFLEDLOADS_H
#define WEFT_COMPILER_KERNELS_EMISSION_SHUFFLEDLOADS_H

#include "compiler/Kernels/Emission/ElementEmitter.h"

namespace weft {

/// Pieces of `size` elements, a power of two, at `starts` from where the first lane reads. Lane i
/// finds its element at `places[i]`, counted through the pieces. All lies between elements that
/// lanes read.
struct ShuffledLoads {
  llvm::SmallVector<int64_t> starts;
  llvm::SmallVector<int64_t> places;
  int64_t size = 1;

  /// What the first `count` lanes of a vector read at `position`; nothing where this is not the
  /// same everywhere or takes more than a few windows.
  static std::optional<ShuffledLoads> of(const IndexSpace &space, const Lanes &lanes, int64_t count,
                                         mlir::AffineExpr position);

  /// The lanes' elements of flat `memory`, whose first lane reads at `address`.
  mlir::Value load(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memory,
                   mlir::Value address) const;
};

} // namespace weft

#endif
