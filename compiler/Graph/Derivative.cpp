// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bookkeeping of one op's cotangents, and what rules of several families write.
#include "compiler/Graph/Derivative.h"
#include "compiler/Graph/Constraints.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace weft;

#include "compiler/Graph/Derivative.cpp.inc"

static Type elementOf(Operation *op) {
  for (Value result : op->getResults())
    if (isa<FloatType>(tensorType(result).getElementType()))
      return tensorType(result).getElementType();
  return Float32Type::get(op->getContext());
}

Cotangents::Cotangents(OpBuilder &builder, Operation *op, ArrayRef<Value> results,
                       ArrayRef<bool> wanted)
    : ComputeBuilder(builder, op->getLoc(), elementOf(op)), builder(builder), op(op),
      results(results), wanted(wanted), operands(op->getNumOperands()) {}

bool Cotangents::wants(Value value) const {
  return value && llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
           return operand.get() == value && wanted[operand.getOperandNumber()];
         });
}

void Cotangents::give(unsigned operand, Value cotangent) {
  if (!wanted[operand])
    return;
  assert(!operands[operand] && "an operand's cotangent is given once");
  assert(tensorType(cotangent) == withLayout(tensorType(op->getOperand(operand)), LayoutAttr()) &&
         "a cotangent has its value's type");
  operands[operand] = cotangent;
}

void Cotangents::give(Value value, Value cotangent) {
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get() == value && !operands[operand.getOperandNumber()])
      return give(operand.getOperandNumber(), cotangent);
}

StringRef Cotangents::subgradient() const {
  auto attribute = op->getAttrOfType<StringAttr>(attr::subgradient);
  return attribute ? attribute.getValue() : StringRef();
}

Value Cotangents::productOrZero(Value x, Value y) {
  Value product = mul(x, y);
  product.getDefiningOp()->setAttr(attr::subgradient, builder.getStringAttr("zero"));
  return select(compare(ComparePredicate::eq, x, 0), splat(x, 0), product);
}

Value Cotangents::compare(ComparePredicate predicate, Value x, Value y) {
  return create<CmpOp>(predicate, x, y);
}

Value Cotangents::compare(ComparePredicate predicate, Value x, double number) {
  return compare(predicate, x, splat(x, number));
}

Value Cotangents::select(Value condition, Value x, Value y) {
  return create<SelectOp>(condition, x, y);
}

Value Cotangents::where(Value condition, Value value) {
  return select(condition, value, splat(value, 0));
}

Value Cotangents::transpose(Value value, ArrayRef<int64_t> perm) {
  if (llvm::equal(perm, llvm::seq<int64_t>(0, perm.size())))
    return value;
  return create<TransposeOp>(value, perm);
}

Value Cotangents::total(Value value, ArrayRef<int64_t> dims) {
  if (dims.empty())
    return value;
  Type element = tensorType(value).getElementType();
  return leave(reduce(ReduceKind::sum, enter(value), dims), element);
}

Value Cotangents::slice(Value value, ArrayRef<int64_t> start, ArrayRef<int64_t> limit,
                        ArrayRef<int64_t> stride) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  bool whole = limit == shape && llvm::all_of(start, [](int64_t n) { return n == 0; }) &&
               llvm::all_of(stride, [](int64_t n) { return n == 1; });
  return whole ? value : create<SliceOp>(value, start, limit, stride);
}

Value Cotangents::padZeros(Value value, ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
  RankedTensorType type = tensorType(value);
  SmallVector<int64_t> start, limit, stride(type.getRank(), 1), before, behind;
  for (auto [size, first, last] : llvm::zip_equal(type.getShape(), low, high)) {
    start.push_back(std::max<int64_t>(-first, 0));
    limit.push_back(std::max(size - std::max<int64_t>(-last, 0), start.back()));
    before.push_back(std::max<int64_t>(first, 0));
    behind.push_back(std::max<int64_t>(last, 0));
  }
  value = slice(value, start, limit, stride);
  auto isZero = [](int64_t n) { return n == 0; };
  if (llvm::all_of(before, isZero) && llvm::all_of(behind, isZero))
    return value;
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value zero = create<ConstantOp>(
      DenseElementsAttr::get(scalar, builder.getZeroAttr(type.getElementType())));
  return create<PadOp>(value, zero, before, behind);
}

Value Cotangents::place(Value value, ArrayRef<int64_t> start, ArrayRef<int64_t> stride,
                        ArrayRef<int64_t> shape) {
  // Between two elements of a strided dim stand stride - 1 zeros: after each, in a dim of its own.
  SmallVector<int64_t> split, low, high, joined;
  for (auto [size, step] : llvm::zip_equal(tensorType(value).getShape(), stride)) {
    split.push_back(size);
    low.push_back(0);
    high.push_back(0);
    if (step > 1) {
      split.push_back(1);
      low.push_back(0);
      high.push_back(step - 1);
    }
    joined.push_back(size * step);
  }
  value = reshape(padZeros(reshape(value, split), low, high), joined);
  SmallVector<int64_t> before(start), behind;
  for (auto [size, first, wide] : llvm::zip_equal(joined, start, shape))
    behind.push_back(wide - first - size);
  return padZeros(value, before, behind);
}

void weft::registerDerivatives(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, WeftDialect *) {
    deriveUnary(context);
    deriveBinary(context);
    deriveShape(context);
    deriveReduce(context);
    deriveContract(context);
    deriveIndex(context);
    deriveComposite(context);
    deriveAttention(context);
    deriveScan(context);
    deriveSlopes(context);
  });
}
