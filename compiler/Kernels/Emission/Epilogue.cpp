// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Follows the users of a result forward to the roots that its tiles can store.
#include "compiler/Kernels/Emission/Epilogue.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace weft;

/// The index of each result of `user` at the element computed from `operand` at `index`.
static FailureOr<Index> indexThrough(OpOperand &operand, const Index &index, IndexSpace &space) {
  Operation *user = operand.getOwner();
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(user)) {
    ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
    Index result;
    for (const auto &group : collapse.getReassociationIndices())
      result.push_back(space.linearize(ArrayRef(index).slice(group.front(), group.size()),
                                       shape.slice(group.front(), group.size())));
    return result;
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(user)) {
    ArrayRef<int64_t> shape = expand.getResultType().getShape();
    Index result;
    for (auto [expr, group] : llvm::zip_equal(index, expand.getReassociationIndices()))
      llvm::append_range(result, space.delinearize(expr, shape.slice(group.front(), group.size())));
    return result;
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user)) {
    // Only slices that drop trailing padding preserve the index of every point.
    if (slice.getDroppedDims().any() ||
        llvm::any_of(slice.getStaticOffsets(), [](int64_t offset) { return offset != 0; }) ||
        llvm::any_of(slice.getStaticStrides(), [](int64_t stride) { return stride != 1; }))
      return failure();
    return index;
  }
  if (auto pad = dyn_cast<tensor::PadOp>(user)) {
    Index result;
    for (auto [expr, low] : llvm::zip_equal(index, pad.getStaticLow()))
      result.push_back(expr + low);
    return result;
  }
  auto generic = dyn_cast<linalg::GenericOp>(user);
  if (!generic || isReduction(generic) || generic.getNumResults() != 1 ||
      generic.isDpsInit(&operand))
    return failure();
  Index iteration(generic.getNumLoops());
  for (auto [expr, at] :
       llvm::zip_equal(generic.getMatchingIndexingMap(&operand).getResults(), index))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      iteration[dim.getPosition()] = at;
  // Size-1 loops need not occur in the operand's map.
  for (auto [expr, range] : llvm::zip_equal(iteration, generic.getStaticLoopRanges()))
    if (!expr) {
      if (range != 1)
        return failure();
      expr = space.constant(0);
    }
  Index result;
  for (AffineExpr expr : generic.getMatchingIndexingMap(generic.getDpsInitOperand(0)).getResults())
    result.push_back(space.simplify(expr.replaceDims(iteration)));
  return result;
}

FailureOr<SmallVector<EpilogueRoot>> weft::epilogueRoots(ValueRange kernelRoots, Value value,
                                                         const Index &index, IndexSpace &space) {
  struct Place {
    Index index;
    SmallVector<Bound> within;
  };
  llvm::MapVector<Value, Place> reached;
  reached[value] = {index, {}};
  SmallVector<EpilogueRoot> roots;
  SmallVector<Value> worklist{value};
  while (!worklist.empty()) {
    value = worklist.pop_back_val();
    Place at = reached[value];
    for (auto [number, root] : llvm::enumerate(kernelRoots))
      if (root == value)
        roots.push_back({static_cast<unsigned>(number), at.index, at.within});
    for (OpOperand &use : value.getUses()) {
      if (isa<func::ReturnOp>(use.getOwner()))
        continue;
      FailureOr<Index> next = indexThrough(use, at.index, space);
      if (failed(next))
        return failure();
      Value result = use.getOwner()->getResult(0);
      SmallVector<Bound> within = at.within;
      if (auto slice = dyn_cast<tensor::ExtractSliceOp>(use.getOwner()))
        for (auto [expr, size] : llvm::zip_equal(*next, slice.getType().getShape()))
          within.push_back({expr, size});
      if (reached.insert({result, {*next, within}}).second)
        worklist.push_back(result);
    }
  }
  if (roots.empty())
    return failure();
  return roots;
}

/// Whether `value`, an element, is only used by additions, after widening.
static bool isOnlyAdded(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<arith::ExtFOp>(user) &&
           llvm::all_of(user->getUsers(), [](Operation *sum) { return isa<arith::AddFOp>(sum); });
  });
}

/// Whether every user of `tensor`, through views, is an addition with a result of the same type: as
/// a bias, which PyTorch's kernel adds before it rounds. Other ops see the rounded value.
static bool isOnlyAdded(KernelFunction &kernel, Value tensor) {
  if (llvm::is_contained(kernel.roots, tensor))
    return false;
  return llvm::all_of(tensor.getUses(), [&](OpOperand &use) {
    if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::ExtractSliceOp>(use.getOwner()))
      return isOnlyAdded(kernel, use.getOwner()->getResult(0));
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    return generic && isOnlyAdded(generic.getMatchingBlockArgument(&use)) &&
           llvm::all_of(generic.getResultTypes(), [&](Type type) {
             return getElementTypeOrSelf(type) == getElementTypeOrSelf(tensor.getType());
           });
  });
}

SmallVector<Value, 2> weft::unroundedForms(KernelFunction &kernel, Value product) {
  SmallVector<Value, 2> forms{product};
  auto rounding =
      product.hasOneUse() ? dyn_cast<linalg::GenericOp>(*product.user_begin()) : nullptr;
  if (!rounding || rounding.getNumResults() != 1)
    return forms;
  Block &body = *rounding.getBody();
  if (body.getOperations().size() == 2 && isa<arith::TruncFOp>(body.front()) &&
      isOnlyAdded(kernel, rounding.getResult(0)))
    forms.push_back(rounding.getResult(0));
  return forms;
}

void weft::storeRoots(KernelFunction &kernel, ElementEmitter &point, ArrayRef<EpilogueRoot> roots,
                      ArrayRef<Value> products, const Emitted &sums) {
  point.setOverride(
      [&](ElementEmitter &, Value tensor, ArrayRef<AffineExpr>) -> std::optional<Emitted> {
        return llvm::is_contained(products, tensor) ? std::optional<Emitted>(sums) : std::nullopt;
      });
  for (const EpilogueRoot &root : roots)
    point.store(kernel.rootBuffers[root.number], root.index,
                point.emitAt(kernel.roots[root.number], root.index), root.within);
  point.setOverride(nullptr);
}

bool weft::isTranscendental(linalg::GenericOp generic) {
  return llvm::any_of(*generic.getBody(), [](Operation &op) {
    return isa<math::MathDialect>(op.getDialect()) &&
           !isa<math::AbsFOp, math::SqrtOp, math::RsqrtOp, math::FloorOp>(op);
  });
}

bool weft::isTranscendental(Value root, linalg::GenericOp contraction) {
  SmallVector<Value> worklist{root};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!worklist.empty()) {
    auto user = worklist.pop_back_val().getDefiningOp<linalg::GenericOp>();
    if (!user || user == contraction || !seen.insert(user).second)
      continue;
    if (isTranscendental(user))
      return true;
    llvm::append_range(worklist, user->getOperands());
  }
  return false;
}
