// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/ContractionResult.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

/// Whether `expr` has a division or remainder of something with `dim`.
static bool divides(AffineExpr expr, unsigned dim) {
  bool found = false;
  expr.walk([&](AffineExpr part) {
    bool isDivision =
        part.getKind() == AffineExprKind::FloorDiv || part.getKind() == AffineExprKind::Mod;
    found |= isDivision && part.isFunctionOfDim(dim);
  });
  return found;
}

void ContractionResult::numberTiles(int64_t tiles) {
  if (!row)
    return;
  for (const EpilogueRoot &root : match.roots)
    for (AffineExpr expr : root.index)
      if (!tileNumber && divides(expr, *row))
        tileNumber = cast<AffineDimExpr>(point.space.addDim(tiles)).getPosition();
}

/// A root at row `i` of the tile at the point.
EpilogueRoot ContractionResult::rootOfRow(const EpilogueRoot &root, int64_t i) const {
  if (!tileNumber)
    return root;
  Index dims;
  for (unsigned dim = 0; dim < point.space.size(); ++dim)
    dims.push_back(getAffineDimExpr(dim, builder.getContext()));
  dims[*row] = dims[*tileNumber] * schedule.rows + i;
  EpilogueRoot result = root;
  for (AffineExpr &expr : result.index)
    expr = point.space.simplify(expr.replaceDims(dims));
  for (Bound &bound : result.within)
    bound.expr = point.space.simplify(bound.expr.replaceDims(dims));
  return result;
}

Value ContractionResult::currentRow() { return row ? point.dimValue(*row) : constant(0); }

void ContractionResult::setRow(Value number) {
  if (row)
    point.setDim(*row, number);
  point.forget();
}

void ContractionResult::storeTile(int64_t rows, int64_t groups, MutableArrayRef<Value> sums,
                                  const Chunk &chunk, Value tile) {
  Value firstRow = currentRow();
  if (tileNumber)
    point.setDim(*tileNumber, dividedBy(firstRow, schedule.rows));
  if (!chunk.first)
    for (int64_t i = 0; i < rows; ++i) {
      setRow(add(firstRow, i));
      addSpilled(rootOfRow(spillRoot(), i), sums.slice(i * groups, groups));
    }
  if (chunk.last) {
    emitEpilogue(firstRow, rows, groups, sums, tile);
  } else {
    for (int64_t i = 0; i < rows; ++i) {
      setRow(add(firstRow, i));
      spill(rootOfRow(spillRoot(), i), sums.slice(i * groups, groups));
    }
  }
  setRow(firstRow);
}

void ContractionResult::storeRow(ArrayRef<Value> sums, const Chunk &chunk) {
  SmallVector<Value, 4> all(sums);
  if (!chunk.first)
    addSpilled(spillRoot(), all);
  if (chunk.last)
    storeRoots(match.roots, {all, false});
  else
    spill(spillRoot(), all);
}

void ContractionResult::spill(const EpilogueRoot &root, ArrayRef<Value> sums) {
  spilled = true;
  point.store(kernel.rootBuffers[root.number], root.index, {SmallVector<Value, 4>(sums), false},
              root.within);
}

void ContractionResult::addSpilled(const EpilogueRoot &root, MutableArrayRef<Value> sums) {
  Emitted earlier = point.load(kernel.rootBuffers[root.number], root.index);
  for (auto [sum, before] : llvm::zip_equal(sums, point.asVectors(earlier)))
    sum = arith::AddFOp::create(builder, loc, before, sum);
}

void ContractionResult::emitEpilogue(Value firstRow, int64_t rows, int64_t groups,
                                     ArrayRef<Value> sums, Value tile) {
  if (!schedule.tileEpilogue) {
    for (int64_t i = 0; i < rows; ++i) {
      setRow(add(firstRow, i));
      SmallVector<EpilogueRoot> roots;
      for (const EpilogueRoot &root : match.roots)
        roots.push_back(rootOfRow(root, i));
      storeRoots(roots, {SmallVector<Value, 4>(sums.slice(i * groups, groups)), false});
    }
    return;
  }
  auto type = cast<VectorType>(sums.front().getType());
  for (auto [i, sum] : llvm::enumerate(sums))
    vector::StoreOp::create(builder, loc, sum, tile, constant(i * schedule.width));
  emitLoop(builder, loc, 0, rows, 1, {}, [&](Value i, ValueRange) {
    Value base = times(i, groups * schedule.width);
    Emitted ofRow{{}, false};
    for (int64_t group = 0; group < groups; ++group)
      ofRow.parts.push_back(
          vector::LoadOp::create(builder, loc, type, tile, add(base, group * schedule.width)));
    setRow(add(firstRow, i));
    storeRoots(match.roots, ofRow);
    return SmallVector<Value>();
  });
}

/// Stores roots at the point's row, computed from its sums.
void ContractionResult::storeRoots(ArrayRef<EpilogueRoot> roots, const Emitted &sums) {
  linalg::GenericOp generic = match.generic;
  weft::storeRoots(kernel, point, roots, unroundedForms(kernel, generic->getResult(0)), sums);
}
