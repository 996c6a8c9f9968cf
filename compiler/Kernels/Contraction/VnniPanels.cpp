// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/VnniPanels.h"
#include "compiler/Kernels/Emission/WideningLoad.h"
#include "compiler/Kernels/X86/Bf16DotProduct.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

bool VnniPanels::suits(const ContractionRoles &roles, const ContractionShape &shape, Type element) {
  auto isHalf = [](const ContractionOperand &operand) {
    return getElementTypeOrSelf(operand.memory.getType()).isBF16();
  };
  return element.isF32() && isHalf(roles.scalars) && isHalf(roles.vectors) &&
         roles.lanesPerScalar == 0 && !shape.reduced.empty();
}

VnniPanels::VnniPanels(KernelFunction &kernel, ElementEmitter &point, Location loc,
                       const ContractionRoles &roles, ArrayRef<unsigned> reduced,
                       const ContractionSchedule &schedule)
    : IndexArithmetic(kernel.builder, loc), point(point), vectors(roles.vectors), reduced(reduced),
      width(schedule.width), half(builder.getBF16Type()),
      scratch(kernel, point, loc, reduced, schedule.panels, schedule.groups * schedule.width, half,
              llvm::alignTo<2>(schedule.chunk)) {}

void VnniPanels::emitCopy(Value number, Value chunkStart, int64_t chunkSize) {
  enter(number, chunkStart);
  auto at = [&](Value variable) { point.setDim(reduced.back(), add(chunkStart, variable)); };
  int64_t even = chunkSize / 2 * 2;
  emitLoops(point, ArrayRef(reduced).drop_back(), [&] {
    emitLoop(builder, loc, 0, even, 2, {}, [&](Value variable, ValueRange) {
      at(variable);
      copyStep(/*isOddLast=*/false);
      return SmallVector<Value>();
    });
    if (even < chunkSize) {
      at(constant(even));
      copyStep(/*isOddLast=*/true);
    }
  });
}

void VnniPanels::copyStep(bool isOddLast) {
  auto type = VectorType::get({width}, half);
  Value source = point.getBuffer(vectors.memory)->flat;
  Value from = point.indexValue(vectors.position), to = point.indexValue(scratch.position);
  int64_t stride = *point.space.coefficientOf(vectors.position, reduced.back());
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  for (int64_t group : llvm::seq(point.getLanes().groups)) {
    auto load = [&](int64_t offset) {
      return loadVector(builder, loc, type, source, add(from, offset + group * width),
                        point.validMask(group));
    };
    Value first = load(0), second = isOddLast ? zero : load(stride);
    Value pairs = vector::InterleaveOp::create(builder, loc, first, second);
    vector::StoreOp::create(builder, loc, pairs, scratch.memory, add(to, group * 2 * width));
  }
}

/// Broadcasts the scalars of two steps into each lane; zero for the second of an odd last step.
Value VnniPanels::broadcastPair(Value source, Value address, bool isOddLast) {
  Type word = builder.getI32Type();
  Value bits;
  if (isOddLast) {
    Value scalar = memref::LoadOp::create(builder, loc, source, address);
    Value narrow = arith::BitcastOp::create(builder, loc, builder.getI16Type(), scalar);
    bits = arith::ExtUIOp::create(builder, loc, word, narrow);
  } else {
    Value pair = vector::LoadOp::create(builder, loc, VectorType::get({2}, half), source, address);
    Value words = vector::BitCastOp::create(builder, loc, VectorType::get({1}, word), pair);
    bits = vector::ExtractOp::create(builder, loc, words, 0);
  }
  Value all = vector::BroadcastOp::create(builder, loc, VectorType::get({width}, word), bits);
  return vector::BitCastOp::create(builder, loc, VectorType::get({2 * width}, half), all);
}

SmallVector<Value> VnniPanels::emitSteps(const TileOperand &scalars, int64_t rowStride,
                                         int64_t rows, bool isOddLast,
                                         ArrayRef<Value> accumulators) {
  int64_t groups = point.getLanes().groups;
  auto type = VectorType::get({2 * width}, half);
  Value vectorBase = point.indexValue(scratch.position);
  SmallVector<Value> columns;
  for (int64_t group : llvm::seq(groups))
    columns.push_back(vector::LoadOp::create(builder, loc, type, scratch.memory,
                                             add(vectorBase, group * 2 * width)));
  Value scalarBase = point.indexValue(scalars.position);
  SmallVector<Value> sums(accumulators);
  for (int64_t i : llvm::seq(rows)) {
    Value pair = broadcastPair(scalars.memory, add(scalarBase, i * rowStride), isOddLast);
    for (int64_t group : llvm::seq(groups)) {
      Value &sum = sums[i * groups + group];
      sum = addPairProducts(builder, loc, sum, pair, columns[group]);
    }
  }
  return sums;
}
