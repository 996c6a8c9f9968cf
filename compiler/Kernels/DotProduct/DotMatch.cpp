// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/DotProduct/DotMatch.h"
#include "compiler/Graph/AttributeNames.h"

using namespace mlir;
using namespace weft;

FailureOr<DotMatch> DotMatch::of(linalg::GenericOp generic, func::FuncOp kernel,
                                 const TargetInfo &) {
  DotMatch match(generic);
  FailureOr<DotOperands> dot = DotOperands::match(generic, match.space);
  if (failed(dot))
    return failure();
  match.dot = *dot;
  auto roots =
      epilogueRoots(rootsOf(kernel), generic->getResult(0), dot->shape.resultIndex, match.space);
  if (failed(roots))
    return failure();
  match.roots = *roots;
  const IndexSpace &space = match.space;
  Type columnType = getElementTypeOrSelf(dot->columns.memory.getType());
  DotProblem &problem = match.problem;
  problem.hasRows = dot->row.has_value();
  problem.rows = problem.hasRows ? space.extent(*dot->row) : 1;
  problem.columns = space.extent(dot->column);
  problem.depth = space.extent(dot->depth);
  problem.elementBits = match.elementType().getIntOrFloatBitWidth();
  problem.columnBits = columnType.getIntOrFloatBitWidth();
  problem.outer = space.count(dot->outer);
  problem.flops = dot->shape.flops(space);
  problem.halves = match.elementType().isF32() && columnType.isBF16() &&
                   getElementTypeOrSelf(dot->rows.memory.getType()).isBF16();
  problem.oneReduced = dot->shape.reduced.size() == 1;
  problem.coldColumns = kernel->hasAttr(attr::coldWeights);
  return match;
}

FailureOr<SkinnyMatmulMatch> SkinnyMatmulMatch::of(linalg::GenericOp generic, func::FuncOp kernel,
                                                   const TargetInfo &target) {
  FailureOr<DotMatch> match = DotMatch::of(generic, kernel, target);
  if (failed(match))
    return failure();
  auto isOf = [&](const ContractionOperand &operand) {
    return getElementTypeOrSelf(operand.memory.getType()) == match->elementType();
  };
  const DotProblem &problem = match->problem;
  if (!problem.oneReduced || !match->dot.outer.empty() || !problem.hasRows ||
      !isOf(match->dot.rows) || !isOf(match->dot.columns))
    return failure();
  return SkinnyMatmulMatch(std::move(*match));
}
