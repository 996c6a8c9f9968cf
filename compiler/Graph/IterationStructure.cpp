// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What follows of an op's loops from its description, and questions about them.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/IterationBuilder.h"

using namespace mlir;
using namespace weft;

IterationBuilder::IterationBuilder(Operation *op) : op(op) {
  for (Value operand : op->getOperands())
    structure.operands.emplace_back(tensorType(operand).getRank());
  for (Value result : op->getResults())
    structure.results.emplace_back(tensorType(result).getRank());
  structure.blocked.assign(op->getNumOperands(), false);
}

DimAccess IterationBuilder::loop(int64_t size, LoopKind kind) {
  if (size == 1 && kind == LoopKind::Parallel)
    return {};
  structure.sizes.push_back(size);
  structure.loops.push_back(kind);
  return {DimAccessKind::Exact, {unsigned(structure.sizes.size() - 1)}};
}

TensorAccess &IterationBuilder::loopsOfResult(unsigned number) {
  for (auto [dim, size] : llvm::enumerate(tensorType(op->getResult(number)).getShape()))
    structure.results[number][dim] = loop(size);
  return structure.results[number];
}

void IterationBuilder::elementwise() {
  TensorAccess access = loopsOfResult();
  for (TensorAccess &operand : structure.operands)
    operand = access;
}

DimAccess weft::shifted(DimAccess access, bool skips) {
  access.kind = DimAccessKind::Shifted;
  access.skips = skips;
  return access;
}

DimAccess weft::window(const DimAccess &outer, const DimAccess &inner) {
  DimAccess access{DimAccessKind::Window, outer.loops};
  llvm::append_range(access.loops, inner.loops);
  return access;
}

Operation *weft::copyOnStack(OpBuilder &builder, Operation *op, RankedTensorType type, Value first,
                             ValueRange rest) {
  Operation *copy = builder.clone(*op);
  copy->setOperand(0, first);
  for (auto [number, operand] : llvm::enumerate(rest))
    copy->setOperand(number + 1, operand);
  copy->getResult(0).setType(type);
  return copy;
}

SmallVector<int64_t> weft::stackedDims(ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims, [](int64_t dim) { return dim + 1; });
}

SmallVector<int64_t> weft::stackedWith(int64_t first, ArrayRef<int64_t> rest) {
  SmallVector<int64_t> all{first};
  llvm::append_range(all, rest);
  return all;
}

/// Relayouts are identities on one operand, but not views, as they move every element.
bool IterationBuilder::isView() const {
  if (op->getNumOperands() > 1 || op->hasTrait<OpTrait::Elementwise>())
    return false;
  return op->getNumOperands() == 0 || !structure.isIdentity();
}

IterationStructure IterationBuilder::finish() {
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
  else if (isolated)
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

  IterationBuilder builder(op);
  if (auto described = dyn_cast<IterationOpInterface>(op))
    described.describeIteration(builder);
  else if (op->hasTrait<OpTrait::Elementwise>())
    builder.elementwise();
  else
    return std::nullopt;
  return builder.finish();
}
