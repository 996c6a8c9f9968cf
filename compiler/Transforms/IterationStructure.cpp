// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Describes the loops of every op of the graph dialect. Parallel dims of size 1 have no loop.
#include "compiler/Transforms/IterationStructure.h"
#include "compiler/Graph/Graph.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;

namespace {

ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Collects loops and accesses of one op.
class StructureBuilder {
public:
  explicit StructureBuilder(Operation *op) : op(op) {
    for (Value operand : op->getOperands())
      structure.operands.emplace_back(shapeOf(operand).size());
    for (Value result : op->getResults())
      structure.results.emplace_back(shapeOf(result).size());
    structure.blocked.assign(op->getNumOperands(), false);
  }

  /// An exact access by a new loop of `size`.
  DimAccess loop(int64_t size, LoopKind kind = LoopKind::Parallel) {
    if (size == 1 && kind == LoopKind::Parallel)
      return {};
    structure.sizes.push_back(size);
    structure.loops.push_back(kind);
    return {DimAccessKind::Exact, {unsigned(structure.sizes.size() - 1)}};
  }

  /// One parallel loop per dim of result `number`, which it accesses exactly.
  TensorAccess &loopsOfResult(unsigned number = 0) {
    for (auto [dim, size] : llvm::enumerate(shapeOf(op->getResult(number))))
      structure.results[number][dim] = loop(size);
    return structure.results[number];
  }

  TensorAccess &operand(unsigned number) { return structure.operands[number]; }
  TensorAccess &result(unsigned number = 0) { return structure.results[number]; }
  void block(unsigned number) { structure.blocked[number] = true; }

  IterationStructure finish();

private:
  bool isView() const;

  Operation *op;
  IterationStructure structure;
};

DimAccess shifted(DimAccess access, bool skips = false) {
  access.kind = DimAccessKind::Shifted;
  access.skips = skips;
  return access;
}

DimAccess window(const DimAccess &outer, const DimAccess &inner) {
  DimAccess access{DimAccessKind::Window, outer.loops};
  llvm::append_range(access.loops, inner.loops);
  return access;
}

/// Relayouts are identities on one operand, but not views, as they move every element.
bool StructureBuilder::isView() const {
  if (op->getNumOperands() > 1 || op->hasTrait<OpTrait::Elementwise>())
    return false;
  return op->getNumOperands() == 0 || !structure.isIdentity();
}

IterationStructure StructureBuilder::finish() {
  auto reduces = [&](const TensorAccess &tensor) {
    return llvm::any_of(tensor, [&](const DimAccess &dim) {
      return llvm::any_of(
          dim.loops, [&](unsigned loop) { return structure.loops[loop] == LoopKind::Reduction; });
    });
  };
  auto slides = [](const TensorAccess &tensor) {
    return llvm::any_of(tensor,
                        [](const DimAccess &dim) { return dim.kind == DimAccessKind::Window; });
  };
  if (isa<CompositeOpInterface>(op))
    structure.kind = IterationKind::Composite;
  else if (isa<GroupedDotOp, ScatterOp, SortOp>(op))
    structure.kind = IterationKind::Isolated;
  else if (llvm::is_contained(structure.blocked, true))
    structure.kind = IterationKind::Contraction;
  else if (llvm::is_contained(structure.loops, LoopKind::Scan) ||
           llvm::any_of(structure.operands, slides))
    structure.kind = IterationKind::Window;
  else if (llvm::any_of(structure.operands, reduces))
    structure.kind = IterationKind::Reduction;
  else
    structure.kind = isView() ? IterationKind::View : IterationKind::Map;
  return std::move(structure);
}

//===----------------------------------------------------------------------===//
// Ops that map
//===----------------------------------------------------------------------===//

void describeIdentity(Operation *op, StructureBuilder &builder) {
  TensorAccess access = builder.loopsOfResult();
  for (unsigned number = 0; number < op->getNumOperands(); ++number)
    builder.operand(number) = access;
}

void describe(BroadcastInDimOp op, StructureBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult();
  for (auto [dim, place] : llvm::enumerate(op.getDims()))
    if (shapeOf(op.getOperand())[dim] != 1)
      builder.operand(0)[dim] = result[place];
}

/// Loops over the common factors of both shapes, innermost first.
void describe(ReshapeOp op, StructureBuilder &builder) {
  ArrayRef<int64_t> from = shapeOf(op.getOperand()), to = shapeOf(op.getResult());
  TensorAccess operand(from.size()), result(to.size());
  size_t i = from.size(), j = to.size();
  int64_t left = 1, right = 1;
  while (true) {
    while (left == 1 && i > 0)
      left = from[--i];
    while (right == 1 && j > 0)
      right = to[--j];
    if (left == 1 && right == 1)
      break;
    int64_t size = std::min(left, right);
    if (size <= 1 || left % size || right % size) {
      builder.loopsOfResult();
      for (DimAccess &dim : builder.operand(0))
        dim.kind = DimAccessKind::Computed;
      return;
    }
    unsigned loop = builder.loop(size).loops.front();
    operand[i].loops.insert(operand[i].loops.begin(), loop);
    result[j].loops.insert(result[j].loops.begin(), loop);
    left /= size;
    right /= size;
  }
  builder.operand(0) = operand;
  builder.result() = result;
}

void describe(TransposeOp op, StructureBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult();
  for (auto [dim, source] : llvm::enumerate(op.getPerm()))
    builder.operand(0)[source] = result[dim];
}

/// Dims of unchanged size are whole; along the others only a part is read or written.
void describePartial(Operation *op, unsigned number, StructureBuilder &builder) {
  ArrayRef<int64_t> from = shapeOf(op->getOperand(number)), to = shapeOf(op->getResult(0));
  for (size_t dim = 0; dim < to.size(); ++dim) {
    const DimAccess &result = builder.result()[dim];
    builder.operand(number)[dim] = from[dim] == to[dim] ? result : shifted(result);
  }
}

void describe(SliceOp op, StructureBuilder &builder) {
  builder.loopsOfResult();
  describePartial(op, 0, builder);
  for (auto [dim, stride] : llvm::enumerate(op.getStride()))
    builder.operand(0)[dim].skips = stride != 1;
}

void describe(PadOp op, StructureBuilder &builder) {
  builder.loopsOfResult();
  describePartial(op, 0, builder);
}

void describe(ConcatOp op, StructureBuilder &builder) {
  builder.loopsOfResult();
  for (unsigned number = 0; number < op->getNumOperands(); ++number)
    describePartial(op, number, builder);
}

void describe(ReverseOp op, StructureBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult();
  builder.operand(0) = result;
  for (int64_t dim : op.getDims())
    builder.operand(0)[dim] = shifted(result[dim], /*skips=*/true);
}

void describe(GatherOp op, StructureBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult();
  size_t indexRank = op.getIndices().empty() ? 0 : shapeOf(op.getIndices().front()).size();
  size_t next = indexRank;
  for (size_t dim = 0; dim < builder.operand(0).size(); ++dim) {
    if (llvm::is_contained(op.getIndexedDims(), int64_t(dim)))
      builder.operand(0)[dim].kind = DimAccessKind::Computed;
    else
      builder.operand(0)[dim] = result[next++];
  }
  for (unsigned number = 1; number < op->getNumOperands(); ++number)
    builder.operand(number) = TensorAccess(result.begin(), result.begin() + indexRank);
}

void describe(ScatterOp op, StructureBuilder &builder) {
  builder.operand(0) = builder.loopsOfResult();
  for (unsigned number = 1; number < op->getNumOperands(); ++number)
    for (DimAccess &dim : builder.operand(number))
      dim.kind = DimAccessKind::Computed;
}

void describe(SortOp op, StructureBuilder &builder) {
  builder.operand(0) = builder.result(1) = builder.loopsOfResult();
  builder.operand(0)[op.getDim()] = {DimAccessKind::Computed, {}};
}

//===----------------------------------------------------------------------===//
// Ops that reduce
//===----------------------------------------------------------------------===//

/// Dims of the operand become loops, those in `reduced` of `kind`; the others keep their order.
void describeReduced(Value operand, ArrayRef<int64_t> reduced, LoopKind kind,
                     StructureBuilder &builder) {
  size_t next = 0;
  for (auto [dim, size] : llvm::enumerate(shapeOf(operand))) {
    bool disappears = llvm::is_contained(reduced, int64_t(dim));
    builder.operand(0)[dim] = builder.loop(size, disappears ? kind : LoopKind::Parallel);
    if (!disappears)
      builder.result()[next++] = builder.operand(0)[dim];
  }
}

void describe(ReduceOp op, StructureBuilder &builder) {
  describeReduced(op.getOperand(), op.getDims(), LoopKind::Reduction, builder);
}

void describe(CumulativeOp op, StructureBuilder &builder) {
  for (auto [dim, size] : llvm::enumerate(shapeOf(op.getOperand())))
    builder.result()[dim] = builder.loop(
        size, int64_t(dim) == int64_t(op.getDim()) ? LoopKind::Scan : LoopKind::Parallel);
  builder.operand(0) = builder.result();
}

void describe(ReduceWindowOp op, StructureBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult();
  for (auto [dim, size] : llvm::enumerate(op.getWindow()))
    builder.operand(0)[dim] = window(result[dim], builder.loop(size, LoopKind::Reduction));
}

//===----------------------------------------------------------------------===//
// Ops that contract
//===----------------------------------------------------------------------===//

void describe(DotGeneralOp op, StructureBuilder &builder) {
  TensorAccess &lhs = builder.operand(0), &rhs = builder.operand(1), result;
  for (auto [left, right] : llvm::zip_equal(op.getLhsBatch(), op.getRhsBatch())) {
    lhs[left] = rhs[right] = builder.loop(shapeOf(op.getLhs())[left]);
    result.push_back(lhs[left]);
  }
  auto free = [&](Value operand, TensorAccess &access, ArrayRef<int64_t> batch,
                  ArrayRef<int64_t> contract) {
    for (auto [dim, size] : llvm::enumerate(shapeOf(operand)))
      if (!llvm::is_contained(batch, int64_t(dim)) && !llvm::is_contained(contract, int64_t(dim)))
        result.push_back(access[dim] = builder.loop(size));
  };
  free(op.getLhs(), lhs, op.getLhsBatch(), op.getLhsContract());
  free(op.getRhs(), rhs, op.getRhsBatch(), op.getRhsContract());
  for (auto [left, right] : llvm::zip_equal(op.getLhsContract(), op.getRhsContract()))
    lhs[left] = rhs[right] = builder.loop(shapeOf(op.getLhs())[left], LoopKind::Reduction);
  builder.result() = result;
  builder.block(0);
  builder.block(1);
}

void describe(MultiDotOp op, StructureBuilder &builder) {
  TensorAccess &lhs = builder.operand(0), rows;
  for (auto [dim, size] : llvm::enumerate(shapeOf(op.getLhs()))) {
    bool contracted = llvm::is_contained(op.getLhsContract(), int64_t(dim));
    lhs[dim] = builder.loop(size, contracted ? LoopKind::Reduction : LoopKind::Parallel);
    if (!contracted)
      rows.push_back(lhs[dim]);
  }
  builder.block(0);
  for (auto [number, weight] : llvm::enumerate(op.getRhs())) {
    TensorAccess &rhs = builder.operand(number + 1);
    for (auto [left, right] : llvm::zip_equal(op.getLhsContract(), op.getRhsContract()))
      rhs[right] = lhs[left];
    builder.result(number) = rows;
    for (auto [dim, size] : llvm::enumerate(shapeOf(weight)))
      if (!llvm::is_contained(op.getRhsContract(), int64_t(dim)))
        builder.result(number).push_back(rhs[dim] = builder.loop(size));
    builder.block(number + 1);
  }
}

/// Input channels of a grouped convolution are a window over (group, channel in group).
void describe(ConvOp op, StructureBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult(), &input = builder.operand(0),
               &weight = builder.operand(1);
  ArrayRef<int64_t> kernel = shapeOf(op.getWeight());
  input[0] = result[0];
  weight[0] = result[1];
  weight[1] = builder.loop(kernel[1], LoopKind::Reduction);
  input[1] = op.getGroups() == 1 ? weight[1] : window(result[1], weight[1]);
  for (size_t dim = 2; dim < kernel.size(); ++dim) {
    weight[dim] = builder.loop(kernel[dim], LoopKind::Reduction);
    input[dim] = window(result[dim], weight[dim]);
  }
  builder.block(0);
  builder.block(1);
}

void describe(WinogradConvOp op, StructureBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult(), &input = builder.operand(0),
               &transformed = builder.operand(1), &weight = builder.operand(2);
  transformed[0] = builder.loop(shapeOf(op.getTransformed())[0], LoopKind::Reduction);
  transformed[1] = builder.loop(shapeOf(op.getTransformed())[1], LoopKind::Reduction);
  transformed[2] = result[1];
  weight[0] = result[1];
  weight[1] = transformed[1];
  input[0] = result[0];
  input[1] = transformed[1];
  for (size_t dim : {2, 3}) {
    weight[dim] = builder.loop(shapeOf(op.getWeight())[dim], LoopKind::Reduction);
    input[dim] = window(result[dim], weight[dim]);
  }
  for (unsigned number = 0; number < 3; ++number)
    builder.block(number);
}

/// The matrix of a row depends on data.
void describe(GroupedDotOp op, StructureBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult(), &rows = builder.operand(0),
               &weights = builder.operand(1);
  rows[0] = result[0];
  rows[1] = weights[2] = builder.loop(shapeOf(op.getRows())[1], LoopKind::Reduction);
  weights[0].kind = builder.operand(2)[0].kind = DimAccessKind::Computed;
  weights[1] = result[1];
  builder.block(0);
  builder.block(1);
}

void describe(AttentionOp op, StructureBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult();
  size_t rank = result.size();
  TensorAccess leading(result.begin(), result.end() - 2);
  DimAccess key = builder.loop(shapeOf(op.getKey())[rank - 2], LoopKind::Reduction);
  DimAccess feature = builder.loop(shapeOf(op.getQuery())[rank - 1], LoopKind::Reduction);
  auto access = [&](const DimAccess &row, const DimAccess &column) {
    TensorAccess tensor = leading;
    tensor.push_back(row);
    tensor.push_back(column);
    return tensor;
  };
  builder.operand(0) = access(result[rank - 2], feature);
  builder.operand(1) = access(key, feature);
  builder.operand(2) = access(key, result[rank - 1]);
  for (unsigned number = 0; number < 3; ++number)
    builder.block(number);
  if (op.getMask())
    builder.operand(3) = access(result[rank - 2], key);
}

} // namespace

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

/// The loops of all dims of a tensor, outermost first.
static SmallVector<unsigned> flatten(const TensorAccess &tensor) {
  SmallVector<unsigned> loops;
  for (const DimAccess &dim : tensor)
    llvm::append_range(loops, dim.loops);
  return loops;
}

bool IterationStructure::isIdentity() const {
  if (!keepsElementOrder())
    return false;
  return llvm::all_of(operands, [&](const TensorAccess &operand) {
    return llvm::equal(operand, results.front(),
                       [](const DimAccess &a, const DimAccess &b) { return a.loops == b.loops; });
  });
}

bool IterationStructure::isExact() const {
  auto exact = [](const TensorAccess &tensor) {
    return llvm::all_of(tensor,
                        [](const DimAccess &dim) { return dim.kind == DimAccessKind::Exact; });
  };
  return llvm::all_of(operands, exact) && llvm::all_of(results, exact);
}

bool IterationStructure::keepsElementOrder() const {
  return isExact() && llvm::all_of(operands, [&](const TensorAccess &operand) {
           return flatten(operand) == flatten(results.front());
         });
}

bool IterationStructure::isBlockView() const {
  if (kind != IterationKind::View || operands.size() != 1)
    return false;
  for (const DimAccess &dim : operands.front())
    if (dim.kind == DimAccessKind::Computed || dim.skips)
      return false;
  return flatten(operands.front()).size() == sizes.size();
}

std::optional<IterationStructure> weft::getIterationStructure(Operation *op) {
  if (!isMemoryEffectFree(op) || op->getNumResults() == 0)
    return std::nullopt;
  auto isStatic = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape();
  };
  if (!llvm::all_of(op->getOperandTypes(), isStatic) ||
      !llvm::all_of(op->getResultTypes(), isStatic))
    return std::nullopt;

  StructureBuilder builder(op);
  bool known =
      llvm::TypeSwitch<Operation *, bool>(op)
          .Case<ConstantOp, IotaOp>([&](auto) { return builder.loopsOfResult(), true; })
          .Case<BroadcastInDimOp, ReshapeOp, TransposeOp, SliceOp, PadOp, ConcatOp, ReverseOp,
                GatherOp, ScatterOp, SortOp, ReduceOp, CumulativeOp, ReduceWindowOp, DotGeneralOp,
                MultiDotOp, GroupedDotOp, ConvOp, WinogradConvOp, AttentionOp>(
              [&](auto typed) { return describe(typed, builder), true; })
          .Default([&](Operation *other) {
            if (!other->hasTrait<OpTrait::Elementwise>() && !isa<RelayoutOp>(other))
              return false;
            return describeIdentity(other, builder), true;
          });
  if (!known)
    return std::nullopt;
  return builder.finish();
}
