// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Attention/AttentionOutput.h"
#include "compiler/Kernels/Emission/Prefetch.h"
#include "compiler/Kernels/Emission/RegisterTranspose.h"
#include "compiler/Kernels/Emission/SteppedLoop.h"
#include "compiler/Kernels/Emission/StoredIndex.h"

using namespace mlir;
using namespace weft;

AttentionOutput::AttentionOutput(KernelFunction &kernel, ElementEmitter &point, AttentionOp op)
    : IndexArithmetic(kernel.builder, op.getLoc()), kernel(kernel), point(point), op(op) {
  auto queryType = cast<RankedTensorType>(op.getQuery().getType());
  queries = queryType.getDimSize(queryType.getRank() - 2);
}

LogicalResult AttentionOutput::match(const Index &index, const Dims &ofIndex) {
  dims = ofIndex;
  auto type = cast<RankedTensorType>(op.getResult().getType());
  resultIndex = physicalIndex(type, index, point.space);
  auto found = epilogueRoots(kernel.roots, storedResult(op.getResult()), resultIndex, point.space);
  if (failed(found) || found->size() != kernel.roots.size())
    return failure();
  roots = *found;
  return success();
}

bool AttentionOutput::isOfQueries(AffineExpr expr) const {
  return llvm::any_of(dims.parts, [&](AffineExpr dim) {
    return isa<AffineDimExpr>(dim) && expr.isFunctionOfDim(dimOf(dim));
  });
}

void AttentionOutput::fetch(int64_t rows) {
  const Lanes &lanes = point.getLanes();
  for (const EpilogueRoot &root : roots) {
    const Buffer &buffer = kernel.rootBuffers[root.number];
    AffineExpr position = point.space.linearize(root.index, buffer.shape);
    std::optional<int64_t> rowStride = point.space.coefficientOf(position, dimOf(dims.feature));
    if (!rowStride || point.space.coefficientOf(position, lane()) != 1)
      continue;
    Value first = point.indexValue(position);
    for (int64_t row = 0; row < rows; ++row)
      emitRunPrefetch(builder, loc, buffer.flat, add(first, row * *rowStride),
                      lanes.groups * lanes.width, CacheLevel::First, PrefetchIntent::Write);
  }
}

void AttentionOutput::store(RowScratch &output, ArrayRef<Value> sums) {
  auto type = cast<VectorType>(sums.front().getType());
  auto splat = [&](double value) { return emitSplat(builder, loc, type, value); };
  SmallVector<Value> factors;
  for (Value sum : sums) {
    Value factor = arith::DivFOp::create(builder, loc, splat(1.0), sum);
    // With no visible key, the output is zero instead of 0 / 0.
    if (!op.getHiddenScore()) {
      Value empty = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, sum, splat(0.0));
      factor = arith::SelectOp::create(builder, loc, empty, splat(0.0), factor);
    }
    factors.push_back(factor);
  }
  bool transposed = llvm::all_of(roots, [&](const EpilogueRoot &root) {
    AffineExpr position = point.space.linearize(root.index, kernel.rootBuffers[root.number].shape);
    return point.space.coefficientOf(position, dimOf(dims.feature)) == 1;
  });
  int64_t groups = sums.size(), width = type.getDimSize(0);
  int64_t features = point.space.extent(dimOf(dims.feature));
  emitSteps(builder, loc, constant(features), features, transposed ? width : 1, {},
            [&](Value first, int64_t count, Carried) {
              point.setDim(dimOf(dims.feature), first);
              auto vectorAt = [&](int64_t group) -> Value {
                Value vector = output.load(point.indexValue(dims.feature), group);
                return arith::MulFOp::create(builder, loc, vector, factors[group]);
              };
              if (!transposed) {
                Emitted result{{}, false};
                for (int64_t group = 0; group < groups; ++group)
                  result.parts.push_back(vectorAt(group));
                storeRoots(result);
                return SmallVector<Value>();
              }
              for (int64_t group = 0; group < groups; ++group) {
                point.setDim(lane(), constant(group * width));
                emitSquare(
                    point, lane(), dimOf(dims.feature), first, count, width, width,
                    [&] { return vectorAt(group); }, [&](const Emitted &row) { storeRoots(row); });
              }
              return SmallVector<Value>();
            });
}

/// Lanes past the last query have no element in the root if dims have been merged.
void AttentionOutput::storeRoots(const Emitted &result) {
  Value product = op.getResult(), stored = storedResult(product);
  point.forget();
  point.setOverride(
      [&](ElementEmitter &, Value tensor, ArrayRef<AffineExpr>) -> std::optional<Emitted> {
        bool here = tensor == product || tensor == stored;
        return here ? std::optional<Emitted>(result) : std::nullopt;
      });
  for (const EpilogueRoot &root : roots) {
    const Buffer &buffer = kernel.rootBuffers[root.number];
    auto value = [&] { return point.emitAt(kernel.roots[root.number], root.index); };
    bool exact = point.space.rangeOf(dims.token).second < queries;
    // Values in padding lanes may be denormal, which would slow the epilogue: skip them.
    bool hasPlace = llvm::all_of(root.index, [&](AffineExpr expr) {
      return !isOfQueries(expr) || llvm::is_contained(resultIndex, expr);
    });
    if (exact || hasPlace)
      point.store(buffer, root.index, value());
    else
      point.storeWithin(dims.token, queries, buffer, root.index, value);
  }
  point.setOverride(nullptr);
}
