// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lowering passes, in pipeline order.
#ifndef WEFT_LOWERING_PASSES_TD
#define WEFT_LOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

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
