// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/BufferReuse.h"
#include "compiler/Kernels/Emission/AccessAnalysis.h"
#include "compiler/Kernels/Kernels.h"

using namespace mlir;
using namespace weft;

static bool anyOf(ArrayRef<Access> accesses, Value argument) {
  return llvm::any_of(accesses, [&](const Access &access) { return access.tensor == argument; });
}

namespace {
/// The accesses of a root at a symbolic point, which stands for all its points.
struct RootDemand {
  IndexSpace space;
  unsigned rootDims;   ///< the first dims of the space are those of the root
  AffineExpr position; ///< row-major position of the point
  AccessAnalysis demand;

  explicit RootDemand(Value root);
  bool readsInReductions(Value argument) const;
  /// Whether the reductions that read `argument` read exactly the point's row: its dims are those
  /// that no reduction depends on.
  bool reducesOwnRow(Value argument) const;
  bool reads(Value argument) const {
    return anyOf(demand.accesses, argument) || readsInReductions(argument);
  }
  /// Whether all reads of `argument` are at the point's own position, except reductions of its row,
  /// if `reducesRowsFirst`.
  bool readsInPlace(Value argument, bool reducesRowsFirst) const;

private:
  bool isOwnRow(const ReductionDemand &reduction, const Access &access) const;
};
} // namespace

RootDemand::RootDemand(Value root) : space(root.getContext()) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(root.getType()).getShape();
  Index index;
  for (int64_t size : shape)
    index.push_back(size == 1 ? space.constant(0) : space.addDim(size));
  rootDims = space.size();
  position = space.linearize(index, shape);
  demand = demandOf(root, index, space);
}

bool RootDemand::readsInReductions(Value argument) const {
  return llvm::any_of(demand.reductions, [&](const ReductionDemand &reduction) {
    return anyOf(reduction.accesses, argument);
  });
}

/// The access is the point's position with each dim of the row replaced by a reduced dim.
bool RootDemand::isOwnRow(const ReductionDemand &reduction, const Access &access) const {
  SmallVector<unsigned> left(reduction.reducedDims);
  AffineExpr read = position;
  for (unsigned dim : llvm::seq(rootDims)) {
    if (demand.reducesFor(dim))
      continue;
    auto *found = llvm::find_if(left, [&](unsigned reduced) {
      return space.extent(reduced) == space.extent(dim) && access.position &&
             space.coefficientOf(*access.position, reduced) == space.coefficientOf(position, dim);
    });
    if (found == left.end())
      return false;
    MLIRContext *context = position.getContext();
    read = read.replace(getAffineDimExpr(dim, context), getAffineDimExpr(*found, context));
    left.erase(found);
  }
  return left.empty() && access.position == space.simplify(read);
}

bool RootDemand::reducesOwnRow(Value argument) const {
  return llvm::all_of(demand.reductions, [&](const ReductionDemand &reduction) {
    return llvm::all_of(reduction.accesses, [&](const Access &access) {
      return access.tensor != argument || isOwnRow(reduction, access);
    });
  });
}

bool RootDemand::readsInPlace(Value argument, bool reducesRowsFirst) const {
  bool readsAhead = readsInReductions(argument) && !(reducesRowsFirst && reducesOwnRow(argument));
  return !readsAhead && anyOf(demand.accesses, argument) &&
         llvm::all_of(demand.accesses, [&](const Access &access) {
           return access.tensor != argument || access.position == position;
         });
}

void weft::markInPlace(KernelFunction &kernel, bool reducesRowsFirst) {
  SmallVector<RootDemand, 0> demands;
  for (Value root : kernel.roots) {
    demands.emplace_back(root);
    const AccessAnalysis &demand = demands.back().demand;
    if (!demand.complete || !demand.scans.empty())
      return;
  }
  for (auto [number, root] : llvm::enumerate(kernel.roots)) {
    SmallVector<int64_t> places;
    for (BlockArgument argument : kernel.source.getArguments()) {
      auto readElsewhere = [&](const auto &other) {
        return other.index() != number && other.value().reads(argument);
      };
      if (argument.getType() == root.getType() &&
          demands[number].readsInPlace(argument, reducesRowsFirst) &&
          llvm::none_of(llvm::enumerate(demands), readElsewhere))
        places.push_back(argument.getArgNumber());
    }
    if (!places.empty())
      kernel.emitted.setArgAttr(kernel.source.getNumArguments() + number, attr::inPlace,
                                kernel.builder.getDenseI64ArrayAttr(places));
  }
}
