// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packs the B panels of an AMX contraction into scratch, split into bfloat16 parts.
#include "compiler/Kernels/Contraction/AmxContraction.h"
#include "compiler/Kernels/Emission/Prefetch.h"
#include "compiler/Kernels/Emission/WideningLoad.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace weft;

void AmxContraction::splitVectors() {
  emitLoop(builder, loc, constant(0), block.count, 1, {}, [&](Value number, ValueRange) {
    block.surroundings->atPanel(add(block.panel, number), [&] { splitPanel(number); });
    return SmallVector<Value>();
  });
}

/// Packs panel `number` in VNNI layout: for each lane group, the steps of k in pairs.
void AmxContraction::splitPanel(Value number) {
  AffineExpr position = roles.vectors.position;
  Value memory = point.getBuffer(roles.vectors.memory)->flat;
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(operand));
  Value last = constant(chunkSize - 1);
  int64_t stride = *point.space.coefficientOf(position, reduced.back());
  bool whole = chunkSize % unitSteps == 0;
  /// Zeros after the chunk's last step and in lane groups that the panel does not have.
  auto load = [&](Value chunkAddress, Value inner, int64_t group) -> Value {
    if (group >= point.getLanes().groups)
      return zero;
    Value step = whole ? inner : least(inner, last);
    Value address = add(add(chunkAddress, times(step, stride)), group * lanesOfVector);
    // A weight streams from memory: prefetch the rows that are packed four unit steps later.
    emitPrefetch(builder, loc, memory, add(address, 4 * unitSteps * stride), CacheLevel::Second);
    Value numbers = loadVector(builder, loc, operand, memory, address, point.validMask(group));
    if (whole)
      return numbers;
    Value inside = is(arith::CmpIPredicate::ule, inner, last);
    return arith::SelectOp::create(builder, loc, inside, numbers, zero);
  };
  auto splitStep = [&](Value unitStep, ValueRange outer) {
    Value innerStart = splitOuterSteps(unitStep);
    point.setDim(reduced.back(), chunkStart);
    Value chunkAddress = point.indexValue(position);
    Value stepStart = times(add(times(number, chunkSteps), unitStep), stepWords());
    return emitLoop(builder, loc, 0, unitSteps / 2, 1, outer, [&](Value pair, ValueRange now) {
      SmallVector<Value> watch(now);
      Value even = add(innerStart, times(pair, 2));
      Value target = add(stepStart, times(pair, lanesOfVector));
      for (int64_t group : llvm::seq(2)) {
        Value a = load(chunkAddress, even, group), b = load(chunkAddress, add(even, 1), group);
        Bf16Split lower = splitWatched(a, watch), upper = splitWatched(b, watch);
        for (int64_t part : llvm::seq(parts))
          vector::StoreOp::create(builder, loc, pairLanes(builder, loc, lower[part], upper[part]),
                                  vectorParts, add(target, vectorPartOffset(part, group)));
      }
      return watch;
    });
  };
  storeWatch(emitLoop(builder, loc, 0, chunkSteps, 1, beginWatch(), splitStep), panelWatch, number);
}
