// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The meaning of arg_reduce in primitive ops: two reductions, which run in vectors, where one of
// pairs would go element by element.
#include "compiler/Graph/ComputeBuilder.h"
#include "compiler/Graph/Constraints.h"
#include <limits>

using namespace mlir;
using namespace weft;

/// The least position along the dim of what equals the extremum; that is NaN if any element is.
FailureOr<SmallVector<Value>> ArgReduceOp::decompose(OpBuilder &builder) {
  ComputeBuilder b(builder, getLoc(), getOperand().getType().getElementType());
  // An integer stays one: neither f32 nor f64 tells all of them apart.
  bool isFloat = isa<FloatType>(getOperand().getType().getElementType());
  Value x = isFloat ? b.enter(getOperand()) : getOperand();
  int64_t dim = getDim();
  RankedTensorType type = tensorType(x);
  Value extremum = b.unreduce(b.reduce(getKind(), x, dim), x, dim);
  Value isFound = b.create<CmpOp>(ComparePredicate::eq, x, extremum);
  if (isFloat)
    isFound = b.create<OrOp>(isFound, b.create<CmpOp>(ComparePredicate::ne, x, x));
  // Half as many lanes fit where positions are i64.
  Type narrow = builder.getI32Type(), wide = getType().getElementType();
  bool isShort = type.getDimSize(dim) <= std::numeric_limits<int32_t>::max();
  Value position = b.create<IotaOp>(type.clone(isShort ? narrow : wide), dim);
  Value behind = b.splat(position, double(type.getDimSize(dim)));
  Value first = b.reduce(ReduceKind::min, b.create<SelectOp>(isFound, position, behind), dim);
  return SmallVector<Value>{isShort ? b.create<ConvertOp>(getType(), first) : first};
}
