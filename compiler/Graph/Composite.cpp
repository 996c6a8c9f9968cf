// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers, type inference, loops and layouts of the composite ops.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/IterationBuilder.h"
#include "compiler/Graph/OpCost.h"
#include "compiler/Graph/ViewLayouts.h"

using namespace mlir;
using namespace weft;

LogicalResult SoftmaxOp::verify() {
  return checkDim("dim", getDim(), getType().getRank(), [&] { return emitOpError(); });
}

LogicalResult LogSoftmaxOp::verify() {
  return checkDim("dim", getDim(), getType().getRank(), [&] { return emitOpError(); });
}

/// Weight and bias, where given, have the shape `shape`.
static LogicalResult checkAffine(Value weight, Value bias, ArrayRef<int64_t> shape, ErrorFn error) {
  if (weight && failed(checkShape("weight", weight, shape, error)))
    return failure();
  return bias ? checkShape("bias", bias, shape, error) : success();
}

static LogicalResult checkTrailingNorm(RankedTensorType type, int64_t normalizedDims, Value weight,
                                       Value bias, ErrorFn error) {
  if (normalizedDims < 1 || normalizedDims > type.getRank())
    return error() << "expected normalizedDims to be at least 1 and at most rank " << type.getRank()
                   << ", found " << normalizedDims;
  return checkAffine(weight, bias, type.getShape().take_back(normalizedDims), error);
}

LogicalResult LayerNormOp::verify() {
  return checkTrailingNorm(getType(), getNormalizedDims(), getWeight(), getBias(),
                           [&] { return emitOpError(); });
}

LogicalResult RmsNormOp::verify() {
  return checkTrailingNorm(getType(), getNormalizedDims(), getWeight(), {},
                           [&] { return emitOpError(); });
}

static LogicalResult checkChannels(RankedTensorType type, ErrorFn error) {
  if (type.getRank() >= 2)
    return success();
  return error() << "expected an operand of rank 2 or more, found " << type.getRank();
}

LogicalResult GroupNormOp::verify() {
  auto error = [&] { return emitOpError(); };
  if (failed(checkChannels(getType(), error)))
    return failure();
  int64_t channels = getType().getDimSize(1), groups = getGroups();
  if (groups < 1 || channels % groups != 0)
    return emitOpError() << "expected groups to divide the channels (" << channels << "), found "
                         << groups;
  return checkAffine(getWeight(), getBias(), channels, error);
}

LogicalResult BatchNormOp::verify() {
  auto error = [&] { return emitOpError(); };
  if (failed(checkChannels(getType(), error)))
    return failure();
  int64_t channels = getType().getDimSize(1);
  if (failed(checkShape("mean", getMean(), channels, error)) ||
      failed(checkShape("variance", getVariance(), channels, error)))
    return failure();
  return checkAffine(getWeight(), getBias(), channels, error);
}

LogicalResult AttentionOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType query = tensorType(op.getQuery()), key = tensorType(op.getKey());
  RankedTensorType value = tensorType(op.getValue());
  if (failed(checkSameElement("query", op.getQuery(), "key", op.getKey(), error)) ||
      failed(checkSameElement("query", op.getQuery(), "value", op.getValue(), error)))
    return failure();
  int64_t rank = query.getRank();
  if (rank < 2 || key.getRank() != rank || value.getRank() != rank)
    return error() << "expected query, key and value of one rank of 2 or more, found " << rank
                   << ", " << key.getRank() << " and " << value.getRank();
  SmallVector<int64_t> shape(query.getShape());
  shape[rank - 2] = key.getDimSize(rank - 2);
  if (failed(checkShape("key", op.getKey(), shape, error)))
    return failure();
  shape[rank - 1] = value.getDimSize(rank - 1);
  if (failed(checkShape("value", op.getValue(), shape, error)))
    return failure();
  if (std::optional<APFloat> hidden = op.getHiddenScore();
      hidden && !(hidden->convertToDouble() < 0))
    return error() << "expected hiddenScore to be negative";
  if (!op.getMask())
    return success();
  shape[rank - 2] = query.getDimSize(rank - 2);
  shape[rank - 1] = key.getDimSize(rank - 2);
  if (failed(checkShape("mask", op.getMask(), shape, error)))
    return failure();
  Type element = tensorType(op.getMask()).getElementType();
  if (element.isInteger(1) || isa<FloatType>(element))
    return success();
  return error() << "expected a mask of i1 or a float type, found " << element;
}

SmallVector<Type> AttentionOp::infer(Adaptor op) {
  RankedTensorType query = tensorType(op.getQuery());
  SmallVector<int64_t> shape(query.getShape());
  shape.back() = tensorType(op.getValue()).getShape().back();
  return {RankedTensorType::get(shape, query.getElementType())};
}

//===----------------------------------------------------------------------===//
// Loops and layouts
//===----------------------------------------------------------------------===//

static void attentionLoops(AttentionOp op, IterationBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult();
  size_t rank = result.size();
  TensorAccess leading(result.begin(), result.end() - 2);
  DimAccess key = builder.loop(tensorType(op.getKey()).getDimSize(rank - 2), LoopKind::Reduction);
  DimAccess feature =
      builder.loop(tensorType(op.getQuery()).getDimSize(rank - 1), LoopKind::Reduction);
  auto access = [&](const DimAccess &row, const DimAccess &column) {
    TensorAccess tensor = leading;
    tensor.push_back(row);
    tensor.push_back(column);
    return tensor;
  };
  builder.operand(0) = access(result[rank - 2], feature);
  builder.operand(1) = access(key, feature);
  builder.operand(2) = access(key, result[rank - 1]);
  for (unsigned number = 0; number < 3; ++number)
    builder.block(number);
  if (op.getMask())
    builder.operand(3) = access(result[rank - 2], key);
}

bool weft::isPointwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() || isa<GeluOp, SiluOp>(op);
}

template <typename OpTy> static FailureOr<LayoutAttr> activationKept(OpTy op) {
  return layoutOf(op.getOperand().getType());
}

template <typename OpTy> static FailureOr<LayoutAttr> softmaxKept(OpTy op) {
  return unlessTiledAlong(op.getOperand().getType(),
                          [&](int64_t dim) { return dim == static_cast<int64_t>(op.getDim()); });
}

template <typename OpTy> static FailureOr<LayoutAttr> trailingNormKept(OpTy op) {
  RankedTensorType type = op.getOperand().getType();
  return unlessTiledAlong(type, [&](int64_t dim) {
    return dim >= type.getRank() - static_cast<int64_t>(op.getNormalizedDims());
  });
}

static FailureOr<LayoutAttr> groupNormKept(GroupNormOp op) {
  return unlessTiled(op.getOperand().getType());
}

static FailureOr<LayoutAttr> batchNormKept(BatchNormOp op) {
  return unlessTiledAlong(op.getOperand().getType(), [](int64_t dim) { return dim == 1; });
}

static void stackSoftmax(SoftmaxOp copy) { copy.setDim(copy.getDim() + 1); }

/// Scores, and sums of values by them.
static OpWork attentionWork(AttentionOp op) {
  RankedTensorType key = op.getKey().getType();
  int64_t keys = key.getDimSize(key.getRank() - 2);
  return OpWork::products(
      (op.getType().getNumElements() + op.getQuery().getType().getNumElements()) * keys);
}

namespace {
/// Without keys it sums nothing; without features all scores are equal. Hidden keys are not read.
struct AttentionSum : SumOpInterface::ExternalModel<AttentionSum, AttentionOp> {
  Operation::operand_range summed(Operation *op) const { return op->getOperands().slice(1, 1); }
  static bool readsAll() { return false; }
};
} // namespace

void weft::structureComposite(MLIRContext *context) {
  iterate<AttentionOp, attentionLoops>(context);
  keepImages<GeluOp, activationKept<GeluOp>>(context);
  keepImages<SiluOp, activationKept<SiluOp>>(context);
  keepLayout<SoftmaxOp, softmaxKept<SoftmaxOp>>(context);
  keepLayout<LogSoftmaxOp, softmaxKept<LogSoftmaxOp>>(context);
  keepLayout<LayerNormOp, trailingNormKept<LayerNormOp>>(context);
  keepLayout<RmsNormOp, trailingNormKept<RmsNormOp>>(context);
  keepLayout<GroupNormOp, groupNormKept>(context);
  keepImages<BatchNormOp, batchNormKept>(context);
  stack<SoftmaxOp, stackSoftmax>(context);
  stack<LayerNormOp>(context);
  stack<RmsNormOp>(context);
  takes<AttentionOp, attentionWork>(context);
  // A function times a polynomial of 4 additions, which the backward shares.
  takes<OpWork::additions(12), GeluOp, SiluOp>(context);
  takes<OpWork::additions(4), BatchNormOp>(context); // an affine map of each channel
  place<Placement{.stored = true}, AttentionOp>(context);
  AttentionOp::attachInterface<AttentionSum>(*context);
}
