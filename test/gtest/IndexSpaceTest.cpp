// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Simplified index expressions are the same numbers, with divisions gone where ranges say so.
#include "compiler/Kernels/Index/IndexSpace.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace weft;

namespace {

int64_t valueOf(AffineExpr expr, ArrayRef<int64_t> dims) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = valueOf(binary.getLHS(), dims), rhs = valueOf(binary.getRHS(), dims);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::FloorDiv:
    return lhs / rhs;
  default:
    return lhs % rhs;
  }
}

TEST(IndexSpace, whatIsBelowAUnitHasNoPartInADivision) {
  MLIRContext context;
  IndexSpace space(&context);
  AffineExpr row = space.addDim(49), lane = space.addDim(96);
  EXPECT_EQ(space.simplify((row * 96 + lane).floorDiv(672)), row.floorDiv(7));
  EXPECT_EQ(space.simplify((row * 96 + lane) % 672), space.simplify((row % 7) * 96 + lane));
  EXPECT_EQ(space.coefficientOf(space.simplify((row * 96 + lane) % 672), 1), 1);
  // Lanes that reach the next row do.
  EXPECT_EQ(space.simplify((row * 48 + lane).floorDiv(336)), (row * 48 + lane).floorDiv(336));
}

/// A position goes through shapes whose dims are permuted in between, as windows are cut.
TEST(IndexSpace, chainsOfShapesKeepTheirValues) {
  MLIRContext context;
  std::mt19937 random(0);
  for (int round = 0; round < 200; ++round) {
    IndexSpace space(&context);
    SmallVector<int64_t> shape{4, 6, 2, 8};
    AffineExpr given = space.constant(0);
    for (int64_t size : {4, 12, 8})
      given = given * size + space.addDim(size);
    AffineExpr position = space.simplify(given);
    SmallVector<std::pair<SmallVector<int64_t>, SmallVector<unsigned>>> moves;
    for (int move = 0; move < 3; ++move) {
      std::shuffle(shape.begin(), shape.end(), random);
      SmallVector<unsigned> perm{0, 1, 2, 3};
      std::shuffle(perm.begin(), perm.end(), random);
      Index index = space.delinearize(position, shape), moved;
      SmallVector<int64_t> sizes;
      for (unsigned dim : perm) {
        moved.push_back(index[dim]);
        sizes.push_back(shape[dim]);
      }
      position = space.linearize(moved, sizes);
      moves.push_back({shape, perm});
    }
    for (int64_t a = 0; a < 4; ++a)
      for (int64_t b = 0; b < 12; ++b)
        for (int64_t c = 0; c < 8; ++c) {
          int64_t expected = valueOf(given, {a, b, c});
          for (auto &[from, perm] : moves) {
            SmallVector<int64_t> index(4);
            for (int dim = 3; dim >= 0; --dim) {
              index[dim] = expected % from[dim];
              expected /= from[dim];
            }
            expected = 0;
            for (unsigned dim : perm)
              expected = expected * from[dim] + index[dim];
          }
          ASSERT_EQ(valueOf(position, {a, b, c}), expected);
        }
  }
}

} // namespace
