// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/ContractionResult.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weft;

Value ContractionResult::currentRow() { return row ? point.dimValue(*row) : constant(0); }

void ContractionResult::setRow(Value number) {
  if (row)
    point.setDim(*row, number);
  point.forget();
}

void ContractionResult::storeTile(int64_t rows, int64_t groups, MutableArrayRef<Value> sums,
                                  const Chunk &chunk, Value tile) {
  Value firstRow = currentRow();
  if (!chunk.first)
    for (int64_t i = 0; i < rows; ++i) {
      setRow(add(firstRow, i));
      addSpilled(sums.slice(i * groups, groups));
    }
  if (chunk.last) {
    emitEpilogue(firstRow, rows, groups, sums, tile);
  } else {
    for (int64_t i = 0; i < rows; ++i) {
      setRow(add(firstRow, i));
      spill(sums.slice(i * groups, groups));
    }
  }
  setRow(firstRow);
}

void ContractionResult::storeRow(ArrayRef<Value> sums, const Chunk &chunk) {
  SmallVector<Value, 4> all(sums);
  if (!chunk.first)
    addSpilled(all);
  if (chunk.last)
    storeRoots({all, false});
  else
    spill(all);
}

void ContractionResult::spill(ArrayRef<Value> sums) {
  spilled = true;
  const EpilogueRoot &root = spillRoot();
  point.store(kernel.rootBuffers[root.number], root.index, {SmallVector<Value, 4>(sums), false},
              root.within);
}

void ContractionResult::addSpilled(MutableArrayRef<Value> sums) {
  Emitted earlier = point.load(kernel.rootBuffers[spillRoot().number], spillRoot().index);
  for (auto [sum, before] : llvm::zip_equal(sums, point.asVectors(earlier)))
    sum = arith::AddFOp::create(builder, loc, before, sum);
}

void ContractionResult::emitEpilogue(Value firstRow, int64_t rows, int64_t groups,
                                     ArrayRef<Value> sums, Value tile) {
  auto storeAt = [&](Value number, const Emitted &ofRow) {
    setRow(number);
    storeRoots(ofRow);
  };
  if (!schedule.tileEpilogue) {
    for (int64_t i = 0; i < rows; ++i)
      storeAt(add(firstRow, i), {SmallVector<Value, 4>(sums.slice(i * groups, groups)), false});
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
    storeAt(add(firstRow, i), ofRow);
    return SmallVector<Value>();
  });
}

/// Stores every root at the point's row, computed from its sums.
void ContractionResult::storeRoots(const Emitted &sums) {
  linalg::GenericOp generic = match.generic;
  weft::storeRoots(kernel, point, match.roots, unroundedForms(kernel, generic->getResult(0)), sums);
}
