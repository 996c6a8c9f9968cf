// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/ContractionProblem.h"
#include "compiler/Kernels/Contraction/ContractionRoles.h"
#include "compiler/Kernels/Contraction/PackedAPanel.h"
#include "compiler/Kernels/Contraction/PanelPrefetch.h"
#include "compiler/Kernels/Contraction/VnniPanels.h"

using namespace mlir;
using namespace weft;

/// Bytes read of an operand: with strides, less than its memory.
static int64_t bytesOf(const ContractionOperand &operand, const IndexSpace &space) {
  auto type = cast<RankedTensorType>(operand.memory.getType());
  int64_t reads = 1;
  for (unsigned dim : llvm::seq(space.size()))
    if (operand.position.isFunctionOfDim(dim))
      reads *= space.extent(dim);
  return std::min(reads, type.getNumElements()) * type.getElementTypeBitWidth() / 8;
}

/// The largest stride of any of the `dims` in the result.
static int64_t longestStride(ArrayRef<unsigned> dims, const ContractionShape &shape,
                             const IndexSpace &space) {
  int64_t longest = 0;
  for (unsigned dim : dims)
    if (space.extent(dim) > 1)
      longest = std::max(longest, space.coefficientOf(shape.resultPosition, dim).value_or(0));
  return longest;
}

/// Bytes between the vectors of two reduction steps, if all panels are parts of one row.
static int64_t vectorStride(const ContractionRoles &roles, const ContractionShape &shape,
                            const IndexSpace &space) {
  if (roles.lanesPerScalar > 0 || !roles.outerPanels.empty() || !roles.batch.empty() ||
      shape.reduced.size() != 1)
    return 0;
  unsigned bits = getElementTypeOrSelf(roles.vectors.memory.getType()).getIntOrFloatBitWidth();
  auto stride = space.coefficientOf(roles.vectors.position, shape.reduced.front());
  return stride ? *stride * bits / 8 : 0;
}

ContractionProblem ContractionProblem::of(const ContractionShape &shape,
                                          const ContractionRoles &roles, const IndexSpace &space,
                                          Type element) {
  ContractionProblem problem;
  problem.elementBits = element.getIntOrFloatBitWidth();
  Type scalarType = getElementTypeOrSelf(roles.scalars.memory.getType());
  int64_t scalarBytes = scalarType.getIntOrFloatBitWidth() / 8;
  problem.batches = space.count(roles.batch);
  problem.rowCount = roles.row ? space.extent(*roles.row) : 1;
  problem.outerRows = space.count(roles.outerRows);
  problem.rowStrideBytes = roles.rowStride(space) * scalarBytes;
  problem.laneCount = space.extent(roles.lane);
  problem.lanewise = roles.lanesPerScalar > 0;
  problem.outerPanels = space.count(roles.outerPanels);
  bool isPadded = shape.padded && shape.padded->lane == roles.lane;
  problem.lastLanes = isPadded ? shape.padded->inLast : problem.laneCount;
  for (unsigned dim : shape.reduced)
    problem.reduced.push_back(space.extent(dim));
  problem.scalarBytes = bytesOf(roles.scalars, space);
  problem.vectorBytes = bytesOf(roles.vectors, space);
  problem.vectorElementBytes =
      getElementTypeOrSelf(roles.vectors.memory.getType()).getIntOrFloatBitWidth() / 8;
  problem.flops = shape.flops(space);
  SmallVector<unsigned> panelDims = roles.outerPanels;
  panelDims.push_back(roles.lane);
  problem.rowsOutermost =
      longestStride(roles.rowDims(), shape, space) > longestStride(panelDims, shape, space);
  problem.scalarsContiguous = roles.outerRows.empty() && shape.reduced.size() == 1 &&
                              space.coefficientOf(roles.scalars.position, shape.reduced[0]) == 1;
  bool contiguous = !shape.reduced.empty() &&
                    space.coefficientOf(roles.scalars.position, shape.reduced.back()) == 1;
  bool rowsContiguous =
      roles.rowStride(space) == 1 && roles.outerRows.empty() && shape.reduced.size() == 1;
  Type vectorType = getElementTypeOrSelf(roles.vectors.memory.getType());
  if (!problem.lanewise && roles.row && (contiguous || rowsContiguous) && element.isF32() &&
      vectorType == scalarType)
    problem.matrixParts = scalarType.isF32() ? 3 : scalarType.isBF16() ? 1 : 0;
  problem.vectorStrideBytes = vectorStride(roles, shape, space);
  problem.scalarStrideBytes = PackedAPanel::strideBytes(roles, shape, space, element);
  bool paired = VnniPanels::suits(roles, shape, element);
  problem.pairs = paired && contiguous;
  problem.stridedPairs = paired && !contiguous && PackedAPanel::suitsPairs(roles, shape, space);
  problem.packedBytes = PanelPrefetch::packedBytes(roles, shape.reduced, space);
  return problem;
}
