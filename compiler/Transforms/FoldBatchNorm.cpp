// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Batch norms with given statistics become a scale and a shift per channel, which @bind can
// compute. The weight of a preceding convolution takes the scale: as a separate factor it would be
// rounded once for all elements of a channel, a bias that accumulates over layers, while rounding
// errors of weights cancel.
#include "compiler/Graph/ComputeBuilder.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/PreparedValues.h"

namespace weft {
#define GEN_PASS_DEF_FOLDBATCHNORM
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

/// A convolution, possibly with a bias per channel, that only a norm uses.
struct BiasedConv {
  ConvOp conv;
  Value bias; ///< (c), or null

  static BiasedConv behind(Value value) {
    BiasedConv found{value.getDefiningOp<ConvOp>(), nullptr};
    if (auto sum = value.getDefiningOp<AddOp>(); sum && sum->hasOneUse()) {
      if (Value bias = repeatedForChannels(sum.getRhs()))
        found = {sum.getLhs().getDefiningOp<ConvOp>(), bias};
    }
    return found.conv && found.conv->hasOneUse() ? found : BiasedConv();
  }
};

struct FoldBatchNorm : weft::impl::FoldBatchNormBase<FoldBatchNorm> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    PreparedValues prepared(getOperation());
    auto norms = llvm::to_vector(getOperation().getOps<BatchNormOp>());
    for (BatchNormOp norm : norms) {
      // The decomposition computes narrow types in f32.
      Type element = norm.getType().getElementType();
      auto isPrepared = [&](Value value) { return prepared.contains(value); };
      if ((!element.isF32() && !element.isF64()) ||
          !llvm::all_of(norm->getOperands().drop_front(), isPrepared))
        continue;
      BiasedConv source = BiasedConv::behind(norm.getOperand());
      bool folds = source.conv && isPrepared(source.conv.getWeight()) &&
                   (!source.bias || isPrepared(source.bias));
      fold(norm, folds ? source : BiasedConv());
    }
  }

  void fold(BatchNormOp norm, BiasedConv source);
};

} // namespace

void FoldBatchNorm::fold(BatchNormOp norm, BiasedConv source) {
  OpBuilder builder(norm);
  Type element = norm.getType().getElementType();
  ComputeBuilder b(builder, norm.getLoc(), builder.getF64Type());
  Value scale = b.inverseDeviation(b.enter(norm.getVariance()), norm.getEps().convertToDouble());
  if (norm.getWeight())
    scale = b.create<MulOp>(b.enter(norm.getWeight()), scale);
  Value mean = b.enter(norm.getMean());
  Value centre = source.bias ? b.create<SubOp>(b.enter(source.bias), mean) : b.create<NegOp>(mean);
  Value shift = b.create<MulOp>(centre, scale);
  if (norm.getBias())
    shift = b.create<AddOp>(b.enter(norm.getBias()), shift);

  Value scaled;
  if (source.conv) {
    Value wide = b.enter(source.conv.getWeight());
    Value weight = b.leave(b.create<MulOp>(wide, b.broadcast(scale, wide, {0})), element);
    auto conv = cast<ConvOp>(builder.clone(*source.conv));
    conv.getWeightMutable().assign(weight);
    scaled = conv.getResult();
    ++numConvs;
  } else {
    Value factor = b.broadcast(b.leave(scale, element), norm.getOperand(), {1});
    scaled = b.create<MulOp>(norm.getOperand(), factor);
    ++numScales;
  }
  Value result = b.create<AddOp>(scaled, b.broadcast(b.leave(shift, element), scaled, {1}));
  norm.getResult().replaceAllUsesWith(result);
  norm.erase();
}
