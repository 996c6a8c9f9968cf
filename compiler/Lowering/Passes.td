// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lowering passes, in pipeline order.
#ifndef WEFT_LOWERING_PASSES_TD
#define WEFT_LOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Graph to linalg
//===----------------------------------------------------------------------===//

def LowerToLinalg : Pass<"weft-lower-to-linalg", "::mlir::ModuleOp"> {
  let summary = "From graph ops on logical tensors to linalg on physical ones";
  let description = [{
    Tensors become what memory holds: physical shapes, bool and u8 as i8. Each elementwise
    op becomes one linalg.generic over the physical dims of its result, contractions and
    reductions one generic each, changes of shape tensor ops; what moves no element moves
    nothing.

    ```mlir
    %0 = weft.add %a, %b : tensor<6x4xf32, #weft.layout<[0, 1], tile 0 by 4>>
    // becomes
    %0 = linalg.generic ... ins(%a, %b : tensor<2x4x4xf32>, tensor<2x4x4xf32>) ...
    ```

    `weft.attention` stays, on its logical operands behind unrealized casts, for the
    attention emitter; so do `weft.cumulative` on row-major physical tensors, `weft.assert`
    and `weft.torch_fallback`, which gets its element types as `operand_dtypes` and
    `result_dtypes`. Arguments and results of entries keep their logical types as
    `weft.type`. Fails on the other composite ops, which are decomposed before.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// Loops to LLVM
//===----------------------------------------------------------------------===//

def MarkKernelArguments : Pass<"weft-mark-kernel-arguments", "::mlir::func::FuncOp"> {
  let summary = "Tell LLVM that a kernel's buffers do not overlap";
  let description = [{
    Marks every memref argument of a function with `weft.kernel` as `llvm.noalias`. The
    memory plan never lets a result or the scratch buffer overlap another buffer of the
    same call; operands may overlap one another, but they are only read.

    ```mlir
    func.func private @k(%a: memref<8xf32>, %out: memref<8xf32>) attributes {weft.kernel = "nest"}
    // becomes
    func.func private @k(%a: memref<8xf32> {llvm.noalias}, %out: memref<8xf32> {llvm.noalias}) ...
    ```

    Declines on functions that are not kernels.
  }];
}

def MathToLibm : Pass<"weft-math-to-libm", "::mlir::ModuleOp"> {
  let summary = "Call libm for what LLVM has no accurate intrinsic for";
  let description = [{
    Vectors are taken apart first. Math ops that are one instruction or a correctly
    rounded intrinsic (sqrt, floor, fma, ...) are left to convert-math-to-llvm, whose
    expm1 and log1p, on the other hand, lose all digits near zero. What kernels need fast
    has been expanded into vector code before.

    ```mlir
    %0 = math.expm1 %x : f32
    // becomes
    %0 = call @expm1f(%x) : (f32) -> f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif
