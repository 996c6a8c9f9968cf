// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The vectors' operand of a contraction on the matrix unit: a panel's parts in scratch memory.
#include "compiler/Kernels/MatrixContraction.h"
#include "compiler/Kernels/WideLoad.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace weft;

void MatrixContraction::splitVectors(Value panel, Value count, const Surroundings &surroundings) {
  emitLoop(builder, loc, constant(0), count, 1, {}, [&](Value number, ValueRange) {
    surroundings.atPanel(add(panel, number), [&] { splitPanel(number); });
    return SmallVector<Value>();
  });
}

/// The parts of the point's panel: for each group of lanes, two steps side by side.
void MatrixContraction::splitPanel(Value number) {
  Value memory = point.getBuffer(roles.vectors.memory)->flat;
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(operand));
  auto load = [&](Value inner, int64_t group) -> Value {
    if (group >= point.getLanes().groups)
      return zero;
    bool whole = chunkSize % unitSteps == 0;
    Value last = constant(chunkSize - 1);
    point.setDim(reduced.back(), add(chunkStart, whole ? inner : least(inner, last)));
    Value address = add(point.indexValue(roles.vectors.position), group * lanesOfVector);
    Value numbers = loadVector(builder, loc, operand, memory, address, point.validMask(group));
    if (whole)
      return numbers;
    Value inside = is(arith::CmpIPredicate::ule, inner, last);
    return arith::SelectOp::create(builder, loc, inside, numbers, zero);
  };
  auto splitPair = [&](Value unitStep, Value pair, SmallVector<Value> state) {
    Value even = add(splitOuterSteps(unitStep), scaled(pair, 2));
    Value target = add(scaled(number, chunkSteps), unitStep);
    target = add(scaled(target, stepWords()), scaled(pair, lanesOfVector));
    for (int64_t group : llvm::seq(2)) {
      Value a = load(even, group), b = load(add(even, 1), group);
      FloatParts lower = splitWatched(a, state), upper = splitWatched(b, state);
      for (int64_t part : llvm::seq(parts))
        vector::StoreOp::create(builder, loc, pairLanes(builder, loc, lower[part], upper[part]),
                                vectorParts, add(target, vectorPartOffset(part, group)));
    }
    return state;
  };
  SmallVector<Value> state = emitLoop(
      builder, loc, 0, chunkSteps, 1, inputs.begin(), [&](Value unitStep, ValueRange outer) {
        return emitLoop(builder, loc, 0, unitSteps / 2, 1, outer, [&](Value pair, ValueRange now) {
          return splitPair(unitStep, pair, SmallVector<Value>(now));
        });
      });
  Value good = arith::ExtUIOp::create(builder, loc, builder.getI32Type(), inputs.holds(state));
  memref::StoreOp::create(builder, loc, good, panelGood, number);
}
