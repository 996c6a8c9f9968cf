// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/CountedTiles.h"

using namespace mlir;
using namespace weft;

CountedTiles::CountedTiles(KernelFunction &kernel, ElementEmitter &point,
                           const ContractionMatch &match, const ContractionSchedule &schedule)
    : IndexArithmetic(kernel.builder, point.loc), kernel(kernel), point(point), match(match),
      schedule(schedule) {}

/// Whether the first row of a tile is the least: not where a tile goes on with the rows of another
/// matrix of the batch.
bool CountedTiles::growsInTile(AffineExpr row) const {
  const ContractionRoles &roles = match.roles;
  bool grows = true;
  row.walk([&](AffineExpr expr) {
    bool varies =
        expr.isFunctionOfDim(roles.lane) || (roles.row && expr.isFunctionOfDim(*roles.row));
    grows &= expr.getKind() != AffineExprKind::Mod || !varies;
  });
  return grows;
}

ArrayRef<int64_t> CountedTiles::shapeOf(const EpilogueRoot &root) const {
  return cast<RankedTensorType>(kernel.roots[root.number].getType()).getShape();
}

Value CountedTiles::rows() {
  if (kernel.bound().empty() || schedule.copiedSteps || schedule.paired || schedule.matrixUnit)
    return {};
  const EpilogueRoot &root = match.roots.front();
  int64_t place = kernel.bound()[3];
  if (!root.within.empty() || !growsInTile(root.index[place]))
    return {};
  point.forget();
  Value row = point.indexValue(root.index[place]);
  return is(arith::CmpIPredicate::ult, row, kernel.rowsEnd(shapeOf(root)[place]));
}

Value CountedTiles::lanes() {
  ArrayRef<int64_t> bound = kernel.bound();
  if (bound.empty() || !bound[0] || !rows())
    return {};
  const EpilogueRoot &first = match.roots.front();
  AffineExpr row = first.index[bound[3]], within = first.index.back();
  unsigned lane = match.roles.lane;
  if (!within.isFunctionOfDim(lane) || row.isFunctionOfDim(lane))
    return {};
  ArrayRef<int64_t> shape = shapeOf(first);
  for (const EpilogueRoot &root : match.roots)
    if (root.index[bound[3]] != row || root.index.back() != within || shapeOf(root) != shape)
      return {};
  if (shape[bound[3]] >= bound[2])
    return {};
  Value token = add(times(point.indexValue(row), shape.back()), point.indexValue(within));
  Value end = kernel.rowsEnd(bound[2]);
  return subtract(end, least(token, end));
}
