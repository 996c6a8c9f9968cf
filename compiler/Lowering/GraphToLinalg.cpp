// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pass weft-lower-to-linalg: from graph ops on logical tensors to linalg on physical ones. Expects
// kernels as fuse-kernels leaves them; leaves weft.attention (on logical tensors, through casts),
// weft.cumulative, weft.scatter, weft.sort, weft.assert and weft.torch_fallback (on physical ones).
#include "compiler/Lowering/GraphToLinalg.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Lowering/Passes.h"
#include "compiler/Lowering/ScalarMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Iterators.h"

namespace weft {
#define GEN_PASS_DEF_LOWERTOLINALG
#include "compiler/Lowering/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

StorageTypeConverter::StorageTypeConverter() {
  addConversion([](Type type) { return type; });
  addConversion([](RankedTensorType type) { return storageType(type); });
  auto cast = [](OpBuilder &builder, Type type, ValueRange inputs, Location loc) -> Value {
    return UnrealizedConversionCastOp::create(builder, loc, type, inputs).getResult(0);
  };
  addSourceMaterialization(cast);
  addTargetMaterialization(cast);
}

//===----------------------------------------------------------------------===//
// Generic ops
//===----------------------------------------------------------------------===//

Value weft::parallelGeneric(OpBuilder &builder, Location loc, RankedTensorType type,
                            ValueRange inputs, ArrayRef<AffineMap> inputMaps, BodyFn body) {
  Value init = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  SmallVector<AffineMap> maps(inputMaps);
  maps.push_back(builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, loc, type, inputs, init, maps, iterators,
                                   [&](OpBuilder &nested, Location loc, ValueRange args) {
                                     linalg::YieldOp::create(nested, loc,
                                                             body(nested, loc, args.drop_back()));
                                   })
      .getResult(0);
}

Value weft::filled(OpBuilder &builder, Location loc, RankedTensorType type, TypedAttr value) {
  Value scalar = arith::ConstantOp::create(builder, loc, value);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  return linalg::FillOp::create(builder, loc, scalar, empty).getResult(0);
}

AffineMap weft::leadingDims(Builder &builder, unsigned dims, unsigned results) {
  SmallVector<AffineExpr> exprs;
  for (unsigned dim = 0; dim < results; ++dim)
    exprs.push_back(builder.getAffineDimExpr(dim));
  return AffineMap::get(dims, 0, exprs, builder.getContext());
}

SmallVector<utils::IteratorType> weft::iteratorsFor(AffineMap result) {
  SmallVector<utils::IteratorType> iterators;
  for (unsigned dim = 0; dim < result.getNumDims(); ++dim)
    iterators.push_back(result.isFunctionOfDim(dim) ? utils::IteratorType::parallel
                                                    : utils::IteratorType::reduction);
  return iterators;
}

Value weft::reducingGeneric(OpBuilder &builder, Location loc, RankedTensorType type,
                            TypedAttr identity, ValueRange inputs, ArrayRef<AffineMap> maps,
                            BodyFn body) {
  Value init = filled(builder, loc, type, identity);
  return linalg::GenericOp::create(builder, loc, type, inputs, init, maps,
                                   iteratorsFor(maps.back()),
                                   [&](OpBuilder &nested, Location loc, ValueRange args) {
                                     linalg::YieldOp::create(nested, loc, body(nested, loc, args));
                                   })
      .getResult(0);
}

Value weft::narrowed(OpBuilder &builder, Location loc, Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == element)
    return value;
  return parallelGeneric(builder, loc, type.clone(element), value,
                         builder.getMultiDimIdentityMap(type.getRank()),
                         [&](OpBuilder &body, Location loc, ValueRange args) -> Value {
                           return arith::TruncFOp::create(body, loc, element, args.front());
                         });
}

Value weft::logicalIndex(OpBuilder &body, Location loc, const Layout &layout, int64_t dim) {
  if (dim != layout.tileDim)
    return linalg::IndexOp::create(body, loc, layout.position({dim, PhysicalDim::Whole}));
  Value block = linalg::IndexOp::create(body, loc, layout.position({dim, PhysicalDim::Block}));
  Value lane = linalg::IndexOp::create(body, loc, layout.position({dim, PhysicalDim::Lane}));
  Value size = arith::ConstantIndexOp::create(body, loc, layout.tileSize);
  Value start = arith::MulIOp::create(body, loc, block, size);
  return arith::AddIOp::create(body, loc, start, lane);
}

//===----------------------------------------------------------------------===//
// Ops that stay
//===----------------------------------------------------------------------===//

namespace {
struct ConvertAssert : OpConversionPattern<AssertOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(AssertOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.modifyOpInPlace(op, [&] { op->setOperands(adaptor.getOperands()); });
    return success();
  }
};

/// Storage types do not distinguish bool and u8, which the runtime must: keep them as attributes.
struct ConvertFallback : OpConversionPattern<TorchFallbackOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(TorchFallbackOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    for (Type type : llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                                              SmallVector<Type>(op->getResultTypes())))
      if (layoutOf(cast<RankedTensorType>(type)))
        return op.emitOpError("expected row-major operands and results, found ") << type;
    auto elementTypes = [&](TypeRange types) {
      return rewriter.getTypeArrayAttr(
          llvm::map_to_vector(types, [](Type type) { return getElementTypeOrSelf(type); }));
    };
    SmallVector<Type> results;
    if (failed(getTypeConverter()->convertTypes(op.getResultTypes(), results)))
      return failure();
    SmallVector<NamedAttribute> attributes(op->getAttrs());
    attributes.emplace_back("operand_dtypes", elementTypes(op->getOperandTypes()));
    attributes.emplace_back("result_dtypes", elementTypes(op->getResultTypes()));
    rewriter.replaceOpWithNewOp<TorchFallbackOp>(op, results, adaptor.getOperands(), attributes);
    return success();
  }
};

struct ConvertAdvance : OpConversionPattern<AdvanceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(AdvanceOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<AdvanceOp>(op, adaptor.getOperand(), op.getOffset());
    return success();
  }
};

struct ConvertLoop : OpConversionPattern<LoopOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(LoopOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> results;
    if (failed(getTypeConverter()->convertTypes(op.getResultTypes(), results)))
      return failure();
    rewriter.replaceOpWithNewOp<LoopOp>(op, results, adaptor.getOperands(), op->getAttrs());
    return success();
  }
};

struct ConvertConstant : OpConversionPattern<ConstantOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ConstantOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!dense)
      return rewriter.notifyMatchFailure(op, "value is not dense");
    auto logical = cast<RankedTensorType>(op.getType());
    Type element = logical.getElementType(), storage = storageElementType(element);
    if (element.isInteger(1))
      dense = cast<DenseIntElementsAttr>(dense).mapValues(
          storage, [](const APInt &value) { return value.zext(8); });
    else if (element != storage)
      dense = dense.bitcast(storage);
    dense = dense.reshape(RankedTensorType::get(logical.getShape(), storage));
    Value value = arith::ConstantOp::create(rewriter, op.getLoc(), dense);
    StoredTensor stored(value, logical.getShape(), Layout::rowMajor(logical.getRank()));
    rewriter.replaceOp(op, relayout(rewriter, op.getLoc(), stored, Layout::of(logical)));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

struct LowerToLinalg : weft::impl::LowerToLinalgBase<LowerToLinalg> {
  void runOnOperation() override;
};
} // namespace

/// Records the logical types of an entry's signature, for its callers, before they are converted.
static void recordLogicalTypes(func::FuncOp function) {
  if (function->hasAttr(attr::kernel))
    return;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    function.setArgAttr(index, attr::type, TypeAttr::get(type));
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    function.setResultAttr(index, attr::type, TypeAttr::get(type));
}

static void eraseDeadOps(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  module.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (isOpTriviallyDead(op))
      rewriter.eraseOp(op);
  });
}

void LowerToLinalg::runOnOperation() {
  MLIRContext *context = &getContext();
  StorageTypeConverter converter;
  RewritePatternSet patterns(context);
  populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns, converter);
  populateCallOpTypeConversionPattern(patterns, converter);
  populateReturnOpTypeConversionPattern(patterns, converter);
  populateElementwiseToLinalg(patterns, converter);
  populateShapeToLinalg(patterns, converter);
  populateSliceToLinalg(patterns, converter);
  populateReduceToLinalg(patterns, converter);
  populateDotToLinalg(patterns, converter);
  populateConvToLinalg(patterns, converter);
  populateGatherToLinalg(patterns, converter);
  populateScatterToLinalg(patterns, converter);
  populateOrderToLinalg(patterns, converter);
  patterns.add<ConvertAdvance, ConvertAssert, ConvertFallback, ConvertLoop, ConvertConstant>(
      converter, context);

  ConversionTarget target(*context);
  target.addLegalDialect<arith::ArithDialect, linalg::LinalgDialect, math::MathDialect,
                         tensor::TensorDialect>();
  target.addLegalOp<UnrealizedConversionCastOp>();
  target.addDynamicallyLegalDialect<WeftDialect>([&](Operation *op) {
    return op->hasTrait<EmittedWithLayouts>() ||
           (op->hasTrait<EmittedWhole>() && converter.isLegal(op));
  });
  target.addDynamicallyLegalOp<func::FuncOp>([&](func::FuncOp function) {
    return converter.isSignatureLegal(function.getFunctionType()) &&
           converter.isLegal(&function.getBody());
  });
  target.addDynamicallyLegalOp<func::CallOp, func::ReturnOp, AdvanceOp, AssertOp, LoopOp>(
      [&](Operation *op) { return converter.isLegal(op); });
  target.addDynamicallyLegalOp<TorchFallbackOp>(
      [](TorchFallbackOp op) { return op->hasAttr("operand_dtypes"); });

  getOperation().walk(recordLogicalTypes);
  if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
    return signalPassFailure();
  eraseDeadOps(getOperation());
}
