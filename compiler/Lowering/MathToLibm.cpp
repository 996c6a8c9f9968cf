// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Library calls for math ops that neither our vector code nor LLVM computes accurately.
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "compiler/Lowering/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_MATHTOLIBM
#include "compiler/Lowering/Passes.h.inc"
} // namespace weft

namespace {

struct MathToLibm : weft::impl::MathToLibmBase<MathToLibm> {
  void runOnOperation() override {
    ConversionTarget target(getContext());
    target.addLegalDialect<arith::ArithDialect, func::FuncDialect, vector::VectorDialect,
                           math::MathDialect>();
    target.addIllegalOp<math::AcosOp, math::AcoshOp, math::AsinOp, math::AsinhOp, math::AtanOp,
                        math::Atan2Op, math::AtanhOp, math::CbrtOp, math::CosOp, math::CoshOp,
                        math::ErfOp, math::ErfcOp, math::ExpOp, math::Exp2Op, math::ExpM1Op,
                        math::LogOp, math::Log10Op, math::Log1pOp, math::Log2Op, math::PowFOp,
                        math::SinOp, math::SinhOp, math::TanOp, math::TanhOp>();
    RewritePatternSet patterns(&getContext());
    populateMathToLibmConversionPatterns(patterns);
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
