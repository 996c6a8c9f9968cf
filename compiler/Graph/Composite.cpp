// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and type inference of the composite ops.
#include "compiler/Graph/Constraints.h"

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
