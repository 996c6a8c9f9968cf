// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Assigns axes to each dim of each value of a kernel, unites axes along the accesses of the ops,
// and then tests whether the result is one domain G×R.
#include "compiler/Transforms/KernelDomain.h"
#include "compiler/Transforms/AxisTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetOperations.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace weft;

namespace {

using AxisSet = llvm::SmallSet<unsigned, 8>;

class DomainInference {
public:
  DomainInference(const FusionGraph &graph, const KernelBody &body, Operation *anchor,
                  InputAlignment alignment)
      : graph(graph), body(body), anchor(anchor), alignment(alignment) {}

  FailureOr<KernelDomain> run();

private:
  void place(Value value);
  LogicalResult uniteExactAccesses(Operation *op);
  LogicalResult uniteReductions();
  LogicalResult followShiftedAccesses(Operation *op);
  LogicalResult collectAxes();
  FailureOr<KernelDomain> split();
  LogicalResult matchAnchor();

  /// The axes of the loops of `op`.
  ArrayRef<AxisList> loopsOf(Operation *op);
  LogicalResult addAxes(ArrayRef<unsigned> axes, AxisSet &set, unsigned depth = 0) const;
  bool isIndexArithmetic(Value value) const;
  bool tilesCutRows(Value value, const AxisSet &rows) const;

  const FusionGraph &graph;
  const KernelBody &body;
  Operation *anchor;
  InputAlignment alignment;

  AxisTable axes;
  DenseMap<Value, SmallVector<AxisList, 4>> places;
  DenseMap<Operation *, SmallVector<AxisList, 6>> loops;
  /// The row axes of every reduction.
  SmallVector<AxisList> reduced;
  /// Axes of values that are computed at a shifted point, mapped to the axes of that point.
  DenseMap<unsigned, AxisList> shifted;
  /// The domain axes of each value that a node computes.
  SmallVector<std::pair<Value, AxisSet>> extents;
};

} // namespace

FailureOr<KernelDomain> DomainInference::run() {
  for (Operation *op : body.ops)
    if (body.dependent.contains(op))
      for (Value result : op->getResults())
        place(result);
  if (alignment == InputAlignment::Shared)
    for (Value input : body.inputs)
      place(input);

  auto forEachOp = [&](auto step) {
    return success(llvm::all_of(body.ops, [&](Operation *op) {
      return op == anchor || !body.dependent.contains(op) || succeeded(step(op));
    }));
  };
  if (failed(forEachOp([&](Operation *op) { return uniteExactAccesses(op); })) ||
      failed(uniteReductions()) ||
      failed(forEachOp([&](Operation *op) { return followShiftedAccesses(op); })) ||
      failed(collectAxes()))
    return failure();
  if (!anchor)
    return split();
  if (failed(matchAnchor()))
    return failure();
  return KernelDomain();
}

void DomainInference::place(Value value) {
  SmallVector<AxisList, 4> dims;
  for (int64_t size : cast<RankedTensorType>(value.getType()).getShape())
    dims.push_back(axes.create(size));
  places[value] = std::move(dims);
}

ArrayRef<AxisList> DomainInference::loopsOf(Operation *op) {
  auto [it, isNew] = loops.try_emplace(op);
  if (isNew)
    for (int64_t size : graph.getStructure(op)->sizes)
      it->second.push_back(axes.create(size));
  return it->second;
}

static AxisList combine(ArrayRef<AxisList> loops, const DimAccess &dim) {
  AxisList combined;
  for (unsigned loop : dim.loops)
    llvm::append_range(combined, loops[loop]);
  return combined;
}

LogicalResult DomainInference::uniteExactAccesses(Operation *op) {
  const IterationStructure &structure = *graph.getStructure(op);
  ArrayRef<AxisList> opLoops = loopsOf(op);
  auto unite = [&](Value value, const TensorAccess &access) {
    auto it = places.find(value);
    if (it == places.end())
      return true;
    return llvm::all_of(llvm::zip_equal(it->second, access), [&](auto pair) {
      auto &[place, dim] = pair;
      return dim.kind != DimAccessKind::Exact ||
             succeeded(axes.unite(place, combine(opLoops, dim)));
    });
  };
  for (auto [value, access] : llvm::zip_equal(op->getOperands(), structure.operands))
    if (!unite(value, access))
      return failure();
  for (auto [value, access] : llvm::zip_equal(op->getResults(), structure.results))
    if (!unite(value, access))
      return failure();

  if (structure.kind != IterationKind::Reduction)
    return success();
  AxisList rows;
  for (auto [axis, kind] : llvm::zip_equal(opLoops, structure.loops))
    if (kind == LoopKind::Reduction)
      llvm::append_range(rows, axis);
  reduced.push_back(rows);
  return success();
}

/// Reductions may share their loop even without common inputs: rows are the same if their sizes
/// agree.
LogicalResult DomainInference::uniteReductions() {
  for (ArrayRef<unsigned> rows : llvm::drop_begin(reduced, reduced.empty() ? 0 : 1)) {
    AxisList first = axes.resolve(reduced.front()), other = axes.resolve(rows);
    if (first.size() == other.size() &&
        std::is_permutation(first.begin(), first.end(), other.begin()))
      continue;
    if (failed(axes.unite(first, other)))
      return failure();
  }
  return success();
}

LogicalResult DomainInference::followShiftedAccesses(Operation *op) {
  const IterationStructure &structure = *graph.getStructure(op);
  for (auto [operand, access] : llvm::zip_equal(op->getOperands(), structure.operands)) {
    Operation *producer = operand.getDefiningOp();
    if (!producer || !body.dependent.contains(producer))
      continue;
    for (auto [place, dim] : llvm::zip_equal(places.find(operand)->second, access)) {
      AxisList resolved = axes.resolve(place);
      if (dim.kind == DimAccessKind::Exact || resolved.empty())
        continue;
      if (dim.kind != DimAccessKind::Shifted || resolved.size() != 1)
        return failure();
      // A second point would compute the operand twice.
      if (!shifted.try_emplace(resolved.front(), combine(loopsOf(op), dim)).second)
        return failure();
    }
  }
  return success();
}

/// Adds the domain axes of `list`. Fails if one occurs twice, as the value would be needed on a
/// diagonal, and if shifts are cyclic.
LogicalResult DomainInference::addAxes(ArrayRef<unsigned> list, AxisSet &set,
                                       unsigned depth) const {
  if (depth > shifted.size())
    return failure();
  for (unsigned axis : axes.resolve(list)) {
    auto it = shifted.find(axis);
    if (it != shifted.end()) {
      if (failed(addAxes(it->second, set, depth + 1)))
        return failure();
    } else if (!set.insert(axis).second) {
      return failure();
    }
  }
  return success();
}

LogicalResult DomainInference::collectAxes() {
  for (ArrayRef<unsigned> rows : reduced)
    if (llvm::any_of(axes.resolve(rows), [&](unsigned axis) { return shifted.contains(axis); }))
      return failure();
  for (Operation *op : body.ops) {
    if (!body.dependent.contains(op))
      continue;
    // Two loops of an op on one axis would traverse a diagonal: sum(0).amax(0) of a square.
    AxisSet distinct;
    for (ArrayRef<unsigned> loop : op == anchor ? ArrayRef<AxisList>() : loopsOf(op))
      if (failed(addAxes(loop, distinct)))
        return failure();
    bool reduces = graph.getStructure(op)->kind == IterationKind::Reduction;
    for (Value result : op->getResults()) {
      bool mustLieAtPoint = reduces || llvm::is_contained(body.results, result);
      AxisSet set;
      for (ArrayRef<unsigned> dim : places.find(result)->second) {
        if (failed(addAxes(dim, set)))
          return failure();
        if (mustLieAtPoint &&
            llvm::any_of(axes.resolve(dim), [&](unsigned axis) { return shifted.contains(axis); }))
          return failure();
      }
      bool isView = graph.getStructure(op)->kind == IterationKind::View;
      if (!isView || llvm::is_contained(body.results, result))
        extents.emplace_back(result, std::move(set));
    }
  }
  return success();
}

static bool contains(const AxisSet &set, const AxisSet &subset) {
  return llvm::all_of(subset, [&](unsigned axis) { return set.contains(axis); });
}

/// Integers that are not results may be recomputed along the grid: they are hoisted out of loops
/// that do not index them.
bool DomainInference::isIndexArithmetic(Value value) const {
  return isa<IntegerType>(cast<RankedTensorType>(value.getType()).getElementType()) &&
         graph.getStructure(value.getDefiningOp())->kind == IterationKind::Map &&
         !llvm::is_contained(body.results, value);
}

/// Whether `value` has tiles that contain the end of one row and the beginning of the next: loops
/// over tiles would recompute the reductions for each element.
bool DomainInference::tilesCutRows(Value value, const AxisSet &rows) const {
  LayoutAttr layout = layoutOf(cast<RankedTensorType>(value.getType()));
  if (!isTiled(layout))
    return false;
  int64_t tile = layout.getTileSize(), inner = 1;
  AxisList dim = axes.resolve(places.find(value)->second[layout.getTileDim()]);
  for (size_t i = dim.size(); i-- > 1;) {
    inner *= axes.size(dim[i]);
    bool isBorder = rows.contains(dim[i]) != rows.contains(dim[i - 1]);
    if (isBorder && inner % tile != 0 && tile % inner != 0)
      return true;
  }
  return false;
}

FailureOr<KernelDomain> DomainInference::split() {
  AxisSet rows, grid;
  if (!reduced.empty())
    for (unsigned axis : axes.resolve(reduced.front()))
      rows.insert(axis);
  for (auto &[value, set] : extents)
    for (unsigned axis : set)
      if (!rows.contains(axis))
        grid.insert(axis);

  KernelDomain domain;
  domain.hasReduction = !reduced.empty();
  for (unsigned axis : grid)
    domain.gridSize *= axes.size(axis);
  for (unsigned axis : rows)
    domain.rowSize *= axes.size(axis);
  for (auto &[value, set] : extents) {
    size_t onRows = llvm::count_if(rows, [&](unsigned axis) { return set.contains(axis); });
    if (onRows != 0 && onRows != rows.size())
      return failure();
    if (!contains(set, grid) && !isIndexArithmetic(value))
      return failure();
    bool isResult = llvm::is_contained(body.results, value);
    if (isResult && tilesCutRows(value, rows))
      return failure();
    domain.yieldsRows |= onRows != 0 && isResult;
  }
  return domain;
}

/// With an anchor, each value has the domain of one of its results.
LogicalResult DomainInference::matchAnchor() {
  if (!reduced.empty() || !shifted.empty())
    return failure();
  SmallVector<AxisSet> results;
  for (Value result : anchor->getResults()) {
    AxisSet &set = results.emplace_back();
    for (ArrayRef<unsigned> dim : places.find(result)->second)
      if (failed(addAxes(dim, set)))
        return failure();
  }
  return success(llvm::all_of(extents, [&](auto &extent) {
    return llvm::any_of(results, [&](const AxisSet &set) {
      return set.size() == extent.second.size() && contains(set, extent.second);
    });
  }));
}

FailureOr<KernelDomain> weft::inferKernelDomain(const FusionGraph &graph, const KernelBody &body,
                                                Operation *anchor, InputAlignment alignment) {
  return DomainInference(graph, body, anchor, alignment).run();
}
