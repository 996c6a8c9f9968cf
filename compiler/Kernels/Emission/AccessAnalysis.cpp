// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/AccessAnalysis.h"

using namespace mlir;
using namespace weft;

namespace {
/// Collects accesses into one list, each value at each index once, even if reached over several
/// paths.
class Visitor {
public:
  Visitor(IndexSpace &space, AccessAnalysis &demand, SmallVector<Access> &accesses)
      : space(space), demand(demand), accesses(accesses) {}

  void visit(Value tensor, ArrayRef<AffineExpr> index) {
    SmallVector<Index, 1> &before = seen[tensor];
    if (llvm::is_contained(before, index))
      return;
    before.emplace_back(index);
    demand.visited.push_back({tensor, Index(index)});
    if (auto view = throughView(tensor, index, space))
      return visit(view->first, view->second);
    Operation *op = tensor.getDefiningOp();
    if (!op) {
      ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
      accesses.push_back({tensor, space.linearize(index, shape), std::nullopt});
      return;
    }
    if (auto pad = dyn_cast<tensor::PadOp>(op)) {
      Index source;
      for (auto [i, expr] : llvm::enumerate(index))
        source.push_back(space.simplify(expr - pad.getStaticLow()[i]));
      return visit(pad.getSource(), source);
    }
    if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
      llvm::SmallBitVector dropped = insert.getDroppedDims();
      Index source;
      for (auto [i, expr] : llvm::enumerate(index))
        if (!dropped[i])
          source.push_back(space.simplify(expr - insert.getStaticOffset(i)));
      visit(insert.getSource(), source);
      return visit(insert.getDest(), index);
    }
    if (auto scan = dyn_cast<CumulativeOp>(op)) {
      ScanDemand found{scan, Index(index), Index(index), static_cast<unsigned>(scan.getDim()), 0};
      AffineExpr along = space.addDim(scan.getType().getDimSize(scan.getDim()));
      found.along = cast<AffineDimExpr>(along).getPosition();
      found.operandIndex[found.dim] = along;
      visit(scan.getOperand(), found.operandIndex);
      demand.scans.push_back(std::move(found));
      return;
    }
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      return visitGeneric(generic, cast<OpResult>(tensor), index);
    expectNoMemory(tensor);
  }

private:
  /// A producer that is not followed further: anything but fills, constants and empty tensors may
  /// read memory.
  void expectNoMemory(Value tensor) {
    Operation *op = tensor.getDefiningOp();
    demand.complete &= isa_and_present<linalg::FillOp, arith::ConstantOp, tensor::EmptyOp>(op);
  }

  void visitGeneric(linalg::GenericOp generic, OpResult result, ArrayRef<AffineExpr> index) {
    if (demand.find(result, index))
      return;
    FailureOr<Index> iteration = iterationAt(generic, result.getResultNumber(), index, space);
    if (failed(iteration)) {
      demand.complete = false;
      return;
    }
    if (!isReduction(generic)) {
      demand.scalarOps += generic.getBody()->getOperations().size() - 1;
      visitOperands(generic, *iteration);
      return;
    }
    ReductionDemand reduction{generic, Index(index), *iteration, {}, {}};
    SmallVector<int64_t, 4> ranges = generic.getStaticLoopRanges();
    for (auto [expr, range] : llvm::zip_equal(reduction.iteration, ranges))
      if (!expr && range == 1) {
        // A constant, not a dim: indices would otherwise seem to vary along the size-1 loop.
        expr = space.constant(0);
      } else if (!expr) {
        expr = space.addDim(range);
        reduction.reducedDims.push_back(cast<AffineDimExpr>(expr).getPosition());
      }
    Visitor(space, demand, reduction.accesses).visitOperands(generic, reduction.iteration);
    demand.reductions.push_back(std::move(reduction));
  }

  void visitOperands(linalg::GenericOp generic, ArrayRef<AffineExpr> iteration) {
    for (OpOperand &init : generic.getDpsInitsMutable())
      if (generic.payloadUsesValueFromOperand(&init))
        expectNoMemory(init.get());
    demand.readsIndex |= !generic.getBody()->getOps<linalg::IndexOp>().empty();
    for (OpOperand *operand : generic.getDpsInputOperands())
      if (generic.payloadUsesValueFromOperand(operand))
        visit(operand->get(), operandIndex(generic, *operand, iteration, space));
    generic.getBody()->walk([&](tensor::ExtractOp extract) {
      demand.complete &= isa<BlockArgument>(extract.getTensor());
      Access access{extract.getTensor(), std::nullopt, std::nullopt};
      if (!extract.getIndices().empty())
        if (auto loop = extract.getIndices().back().getDefiningOp<linalg::IndexOp>())
          access.innermost = iteration[loop.getDim()];
      accesses.push_back(access);
    });
  }

  IndexSpace &space;
  AccessAnalysis &demand;
  SmallVector<Access> &accesses;
  llvm::DenseMap<Value, SmallVector<Index, 1>> seen;
};
} // namespace

int64_t AccessAnalysis::flops(const IndexSpace &space, int64_t points, int64_t elements) const {
  int64_t total = scalarOps * elements;
  for (const ReductionDemand &reduction : reductions) {
    int64_t ops = linalg::GenericOp(reduction.generic).getBody()->getOperations().size() - 1;
    total += points * space.count(reduction.reducedDims) * std::max<int64_t>(1, ops);
  }
  return total;
}

bool ReductionDemand::isWantedFor(unsigned dim) const {
  return llvm::any_of(index, [&](AffineExpr expr) { return expr.isFunctionOfDim(dim); });
}

bool AccessAnalysis::reducesFor(unsigned dim) const {
  return llvm::any_of(reductions,
                      [&](const ReductionDemand &reduction) { return reduction.isWantedFor(dim); });
}

int64_t ReductionDemand::leastStrided(const IndexSpace &space) const {
  int64_t least = accesses.size();
  for (unsigned dim : reducedDims)
    least = std::min(least, stridedAccesses(accesses, dim, space));
  return least;
}

int64_t weft::stridedAccesses(ArrayRef<Access> accesses, unsigned dim, const IndexSpace &space) {
  int64_t strided = 0;
  for (const Access &access : accesses) {
    if (!access.position && !access.innermost)
      continue;
    std::optional<int64_t> stride =
        space.coefficientOf(access.position ? *access.position : *access.innermost, dim);
    // For a gather only the innermost index is known, so stride 0 does not mean a uniform access.
    bool isContiguous = stride && (*stride == 1 || (*stride == 0 && access.position));
    strided += !isContiguous;
  }
  return strided;
}

const ReductionDemand *AccessAnalysis::find(Value tensor, ArrayRef<AffineExpr> index) const {
  for (const ReductionDemand &reduction : reductions)
    if (reduction.generic == tensor.getDefiningOp() && ArrayRef(reduction.index) == index)
      return &reduction;
  return nullptr;
}

AccessAnalysis weft::demandOf(Value tensor, ArrayRef<AffineExpr> index, IndexSpace &space) {
  AccessAnalysis demand;
  Visitor(space, demand, demand.accesses).visit(tensor, index);
  return demand;
}
