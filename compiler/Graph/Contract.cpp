// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers, type inference and loops of the sums of products.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/IterationBuilder.h"
#include "compiler/Graph/OpCost.h"

using namespace mlir;
using namespace weft;

bool weft::areSumsOf(TypeRange inferred, TypeRange found) {
  return llvm::equal(inferred, found, [](Type expected, Type actual) {
    Type element = getElementTypeOrSelf(expected);
    if ((element.isF16() || element.isBF16()) && getElementTypeOrSelf(actual).isF32())
      expected = cast<RankedTensorType>(expected).clone(getElementTypeOrSelf(actual));
    return equalUpToLayout(expected, actual);
  });
}

/// Paired dims of the two sides have the same size.
static LogicalResult checkPairs(StringRef what, Value lhs, ArrayRef<int64_t> lhsDims, Value rhs,
                                ArrayRef<int64_t> rhsDims, ErrorFn error) {
  if (lhsDims.size() != rhsDims.size())
    return error() << "expected as many " << what << " dims of rhs as of lhs (" << lhsDims.size()
                   << "), found " << rhsDims.size();
  for (auto [left, right] : llvm::zip(lhsDims, rhsDims)) {
    int64_t expected = tensorType(lhs).getDimSize(left), found = tensorType(rhs).getDimSize(right);
    if (expected != found)
      return error() << "expected lhs dim " << left << " (" << expected << ") to equal rhs dim "
                     << right << " (" << found << ")";
  }
  return success();
}

static void appendFree(RankedTensorType type, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract,
                       SmallVectorImpl<int64_t> &shape) {
  for (auto [index, size] : llvm::enumerate(type.getShape())) {
    int64_t dim = index;
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      shape.push_back(size);
  }
}

static LogicalResult checkDot(Value lhs, Value rhs, ArrayRef<int64_t> lhsBatch,
                              ArrayRef<int64_t> rhsBatch, ArrayRef<int64_t> lhsContract,
                              ArrayRef<int64_t> rhsContract, ErrorFn error) {
  auto all = [](ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
    return llvm::to_vector(llvm::concat<const int64_t>(batch, contract));
  };
  if (failed(checkSameElement("lhs", lhs, "rhs", rhs, error)) ||
      failed(checkNumbers("lhs", lhs, error)) ||
      failed(checkDims("batch and contracted dims of lhs", all(lhsBatch, lhsContract),
                       tensorType(lhs).getRank(), error)) ||
      failed(checkDims("batch and contracted dims of rhs", all(rhsBatch, rhsContract),
                       tensorType(rhs).getRank(), error)) ||
      failed(checkPairs("batch", lhs, lhsBatch, rhs, rhsBatch, error)))
    return failure();
  return checkPairs("contracted", lhs, lhsContract, rhs, rhsContract, error);
}

LogicalResult DotGeneralOp::check(Adaptor op, ErrorFn error) {
  return checkDot(op.getLhs(), op.getRhs(), op.getLhsBatch(), op.getRhsBatch(), op.getLhsContract(),
                  op.getRhsContract(), error);
}

SmallVector<Type> DotGeneralOp::infer(Adaptor op) {
  RankedTensorType lhs = tensorType(op.getLhs()), rhs = tensorType(op.getRhs());
  SmallVector<int64_t> shape;
  for (int64_t dim : op.getLhsBatch())
    shape.push_back(lhs.getDimSize(dim));
  appendFree(lhs, op.getLhsBatch(), op.getLhsContract(), shape);
  appendFree(rhs, op.getRhsBatch(), op.getRhsContract(), shape);
  return {RankedTensorType::get(shape, lhs.getElementType())};
}

LogicalResult MultiDotOp::check(Adaptor op, ErrorFn error) {
  if (op.getRhs().empty())
    return error() << "expected at least one rhs, found none";
  for (Value rhs : op.getRhs())
    if (failed(checkDot(op.getLhs(), rhs, {}, {}, op.getLhsContract(), op.getRhsContract(), error)))
      return failure();
  return success();
}

SmallVector<Type> MultiDotOp::infer(Adaptor op) {
  RankedTensorType lhs = tensorType(op.getLhs());
  SmallVector<Type> types;
  for (Value rhs : op.getRhs()) {
    SmallVector<int64_t> shape;
    appendFree(lhs, {}, op.getLhsContract(), shape);
    appendFree(tensorType(rhs), {}, op.getRhsContract(), shape);
    types.push_back(RankedTensorType::get(shape, lhs.getElementType()));
  }
  return types;
}

/// The extent of a padded spatial dim less that of the dilated window over it.
static int64_t convSlack(ConvOp::Adaptor op, int64_t index) {
  int64_t padded = tensorType(op.getInput()).getDimSize(index + 2) + op.getPadLow()[index] +
                   op.getPadHigh()[index];
  return padded -
         ((tensorType(op.getWeight()).getDimSize(index + 2) - 1) * op.getDilations()[index] + 1);
}

LogicalResult ConvOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType input = tensorType(op.getInput()), weight = tensorType(op.getWeight());
  if (failed(checkSameElement("input", op.getInput(), "weight", op.getWeight(), error)) ||
      failed(checkNumbers("input", op.getInput(), error)))
    return failure();
  if (input.getRank() < 3 || weight.getRank() != input.getRank())
    return error() << "expected input and weight of one rank above 2, found " << input.getRank()
                   << " and " << weight.getRank();
  int64_t spatial = input.getRank() - 2, groups = op.getGroups();
  if (failed(checkEntries("strides", op.getStrides(), spatial, 1, error)) ||
      failed(checkEntries("padLow", op.getPadLow(), spatial, 0, error)) ||
      failed(checkEntries("padHigh", op.getPadHigh(), spatial, 0, error)) ||
      failed(checkEntries("dilations", op.getDilations(), spatial, 1, error)))
    return failure();
  if (groups < 1 || weight.getDimSize(0) % groups != 0)
    return error() << "expected groups to divide the output channels (" << weight.getDimSize(0)
                   << "), found " << groups;
  if (input.getDimSize(1) != weight.getDimSize(1) * groups)
    return error() << "expected input dim 1 (" << input.getDimSize(1)
                   << ") to equal weight dim 1 times groups (" << weight.getDimSize(1) * groups
                   << ")";
  for (int64_t index = 0; index < spatial; ++index)
    if (convSlack(op, index) < 0)
      return error() << "expected the weight to fit the padded input along dim " << index + 2
                     << ", found it too large by " << -convSlack(op, index);
  return success();
}

SmallVector<Type> ConvOp::infer(Adaptor op) {
  RankedTensorType input = tensorType(op.getInput()), weight = tensorType(op.getWeight());
  SmallVector<int64_t> shape = {input.getDimSize(0), weight.getDimSize(0)};
  for (int64_t index = 0; index < input.getRank() - 2; ++index)
    shape.push_back(convSlack(op, index) / op.getStrides()[index] + 1);
  return {RankedTensorType::get(shape, input.getElementType())};
}

LogicalResult GroupedDotOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType rows = tensorType(op.getRows()), weights = tensorType(op.getWeights()),
                   ends = tensorType(op.getEnds());
  if (!rows.getElementType().isF32() || !weights.getElementType().isF32())
    return error() << "expected rows and weights of f32, found " << rows << " and " << weights;
  if (!ends.getElementType().isInteger(32) && !ends.getElementType().isInteger(64))
    return error() << "expected ends of i32 or i64, found " << ends;
  if (rows.getRank() != 2 || weights.getRank() != 3)
    return error() << "expected rows of rank 2 and weights of rank 3, found " << rows << " and "
                   << weights;
  if (failed(checkShape("ends", op.getEnds(), weights.getDimSize(0), error)))
    return failure();
  if (rows.getDimSize(1) != weights.getDimSize(2))
    return error() << "expected rows and weights to end with one size, found " << rows << " and "
                   << weights;
  return success();
}

SmallVector<Type> GroupedDotOp::infer(Adaptor op) {
  RankedTensorType rows = tensorType(op.getRows());
  return {rows.clone({rows.getDimSize(0), tensorType(op.getWeights()).getDimSize(1)})};
}

LogicalResult WinogradConvOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType input = tensorType(op.getInput()), weight = tensorType(op.getWeight()),
                   transformed = tensorType(op.getTransformed());
  auto isOf = [](RankedTensorType type, ArrayRef<int64_t> shape) {
    return type.getElementType().isF32() && type.getShape() == shape;
  };
  if (!input.getElementType().isF32() || input.getRank() != 4 || weight.getRank() != 4)
    return error() << "expected input and weight of f32 and rank 4, found " << input << " and "
                   << weight;
  int64_t outputs = weight.getDimSize(0), channels = input.getDimSize(1);
  if (!isOf(weight, {outputs, channels, 3, 3}))
    return error() << "expected a weight of f32 and (o, " << channels << ", 3, 3), found "
                   << weight;
  if (!isOf(transformed, {16, channels, outputs}))
    return error() << "expected a transformed weight of f32 and (16, " << channels << ", "
                   << outputs << "), found " << transformed;
  for (int64_t dim : {2, 3})
    if (int64_t size = input.getDimSize(dim); size < 4)
      return error() << "expected input dim " << dim << " to be at least 4, found " << size;
  return success();
}

SmallVector<Type> WinogradConvOp::infer(Adaptor op) {
  RankedTensorType input = tensorType(op.getInput());
  SmallVector<int64_t> shape = {input.getDimSize(0), tensorType(op.getWeight()).getDimSize(0),
                                input.getDimSize(2) - 2, input.getDimSize(3) - 2};
  return {RankedTensorType::get(shape, input.getElementType())};
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static void dotGeneralLoops(DotGeneralOp op, IterationBuilder &builder) {
  TensorAccess &lhs = builder.operand(0), &rhs = builder.operand(1), result;
  for (auto [left, right] : llvm::zip_equal(op.getLhsBatch(), op.getRhsBatch())) {
    lhs[left] = rhs[right] = builder.loop(tensorType(op.getLhs()).getDimSize(left));
    result.push_back(lhs[left]);
  }
  auto free = [&](Value operand, TensorAccess &access, ArrayRef<int64_t> batch,
                  ArrayRef<int64_t> contract) {
    for (auto [dim, size] : llvm::enumerate(tensorType(operand).getShape()))
      if (!llvm::is_contained(batch, int64_t(dim)) && !llvm::is_contained(contract, int64_t(dim)))
        result.push_back(access[dim] = builder.loop(size));
  };
  free(op.getLhs(), lhs, op.getLhsBatch(), op.getLhsContract());
  free(op.getRhs(), rhs, op.getRhsBatch(), op.getRhsContract());
  for (auto [left, right] : llvm::zip_equal(op.getLhsContract(), op.getRhsContract()))
    lhs[left] = rhs[right] =
        builder.loop(tensorType(op.getLhs()).getDimSize(left), LoopKind::Reduction);
  builder.result() = result;
  builder.block(0);
  builder.block(1);
}

static void multiDotLoops(MultiDotOp op, IterationBuilder &builder) {
  TensorAccess &lhs = builder.operand(0), rows;
  for (auto [dim, size] : llvm::enumerate(tensorType(op.getLhs()).getShape())) {
    bool contracted = llvm::is_contained(op.getLhsContract(), int64_t(dim));
    lhs[dim] = builder.loop(size, contracted ? LoopKind::Reduction : LoopKind::Parallel);
    if (!contracted)
      rows.push_back(lhs[dim]);
  }
  builder.block(0);
  for (auto [number, weight] : llvm::enumerate(op.getRhs())) {
    TensorAccess &rhs = builder.operand(number + 1);
    for (auto [left, right] : llvm::zip_equal(op.getLhsContract(), op.getRhsContract()))
      rhs[right] = lhs[left];
    builder.result(number) = rows;
    for (auto [dim, size] : llvm::enumerate(tensorType(weight).getShape()))
      if (!llvm::is_contained(op.getRhsContract(), int64_t(dim)))
        builder.result(number).push_back(rhs[dim] = builder.loop(size));
    builder.block(number + 1);
  }
}

/// Input channels of a grouped convolution are a window over (group, channel in group).
static void convLoops(ConvOp op, IterationBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult(), &input = builder.operand(0),
               &weight = builder.operand(1);
  ArrayRef<int64_t> kernel = tensorType(op.getWeight()).getShape();
  input[0] = result[0];
  weight[0] = result[1];
  weight[1] = builder.loop(kernel[1], LoopKind::Reduction);
  input[1] = op.getGroups() == 1 ? weight[1] : window(result[1], weight[1]);
  for (size_t dim = 2; dim < kernel.size(); ++dim) {
    weight[dim] = builder.loop(kernel[dim], LoopKind::Reduction);
    input[dim] = window(result[dim], weight[dim]);
  }
  builder.block(0);
  builder.block(1);
}

static void winogradConvLoops(WinogradConvOp op, IterationBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult(), &input = builder.operand(0),
               &transformed = builder.operand(1), &weight = builder.operand(2);
  transformed[0] = builder.loop(tensorType(op.getTransformed()).getDimSize(0), LoopKind::Reduction);
  transformed[1] = builder.loop(tensorType(op.getTransformed()).getDimSize(1), LoopKind::Reduction);
  transformed[2] = result[1];
  weight[0] = result[1];
  weight[1] = transformed[1];
  input[0] = result[0];
  input[1] = transformed[1];
  for (size_t dim : {2, 3}) {
    weight[dim] = builder.loop(tensorType(op.getWeight()).getDimSize(dim), LoopKind::Reduction);
    input[dim] = window(result[dim], weight[dim]);
  }
  for (unsigned number = 0; number < 3; ++number)
    builder.block(number);
}

/// The matrix of a row depends on data.
static void groupedDotLoops(GroupedDotOp op, IterationBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult(), &rows = builder.operand(0),
               &weights = builder.operand(1);
  rows[0] = result[0];
  rows[1] = weights[2] = builder.loop(tensorType(op.getRows()).getDimSize(1), LoopKind::Reduction);
  weights[0].kind = builder.operand(2)[0].kind = DimAccessKind::Computed;
  weights[1] = result[1];
  builder.block(0);
  builder.block(1);
  builder.isolate();
}

static SmallVector<DimWindows> convWindows(ConvOp op) {
  SmallVector<DimWindows> windows;
  ArrayRef<int64_t> window = op.getWeight().getType().getShape().drop_front(2);
  for (auto [i, step] : llvm::enumerate(op.getStrides()))
    windows.push_back(
        {int64_t(i) + 2,
         op.getPadLow()[i] + op.getPadHigh()[i] - (window[i] - 1) * op.getDilations()[i] - 1,
         step});
  return windows;
}

static SmallVector<DimWindows> winogradConvWindows(WinogradConvOp) {
  return {{2, -3, 1}, {3, -3, 1}};
}

namespace {
/// Rows of a stack are more rows, unless each row has a matrix of its own.
struct StackedDot : StackableOpInterface::ExternalModel<StackedDot, DotGeneralOp> {
  bool isStackable(Operation *op) const { return cast<DotGeneralOp>(op).getLhsBatch().empty(); }
  Value stacked(Operation *op, OpBuilder &builder, RankedTensorType type, Value first,
                ValueRange rest) const {
    auto copy = cast<DotGeneralOp>(copyOnStack(builder, op, type, first, rest));
    copy.setLhsContract(stackedDims(copy.getLhsContract()));
    return copy.getResult();
  }
};
} // namespace

static OpWork dotGeneralWork(DotGeneralOp op) {
  int64_t contracted = 1;
  for (int64_t dim : op.getLhsContract())
    contracted *= op.getLhs().getType().getDimSize(dim);
  return OpWork::products(op.getType().getNumElements() * contracted);
}

static OpWork convWork(ConvOp op) {
  RankedTensorType weight = op.getWeight().getType();
  int64_t contracted = weight.getNumElements() / std::max<int64_t>(weight.getDimSize(0), 1);
  return OpWork::products(op.getType().getNumElements() * contracted);
}

void weft::structureContract(MLIRContext *context) {
  iterate<DotGeneralOp, dotGeneralLoops>(context);
  iterate<MultiDotOp, multiDotLoops>(context);
  iterate<ConvOp, convLoops>(context);
  iterate<WinogradConvOp, winogradConvLoops>(context);
  iterate<GroupedDotOp, groupedDotLoops>(context);
  slide<ConvOp, convWindows>(context);
  slide<WinogradConvOp, winogradConvWindows>(context);
  DotGeneralOp::attachInterface<StackedDot>(*context);
  takes<DotGeneralOp, dotGeneralWork>(context);
  takes<ConvOp, convWork>(context);
  takes<OpWork{OpWork::Kind::TooMuch}, MultiDotOp, WinogradConvOp, GroupedDotOp>(context);
  place<Placement{.stored = true}, DotGeneralOp, MultiDotOp, ConvOp, GroupedDotOp>(context);
  sum<DotGeneralOp, MultiDotOp, ConvOp, WinogradConvOp, GroupedDotOp>(context);
}
