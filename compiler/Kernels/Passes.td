// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef WEFT_KERNELS_PASSES_TD
#define WEFT_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def EmitKernels : Pass<"weft-emit-kernels", "::mlir::ModuleOp"> {
  let summary = "Emit every kernel as loops, vectors and memrefs";
  let description = [{
    Replaces each private function marked `weft.kernel`, linalg on tensors, by loops for
    one target, as the schedule on it says. Calls of the kernels are
    left as they were: this is the part of weft-lower-to-loops that can be looked at alone.

    ```mlir
    func.func private @k(%a: tensor<8xf32>) -> tensor<8xf32>
        attributes {weft.kernel = "nest", weft.schedule = #weft.schedule<loop_nest {...}>}
    // becomes
    func.func private @k(%a: memref<8xf32>, %out: memref<8xf32>, %scratch: memref<0xi8>,
                         %thread: index, %threads: index) attributes {weft.kernel = "nest", ...}
    ```
  }];
  let options = [Option<"isa", "isa", "std::string", "\"native\"",
                        "native, avx2, avx512 or amx, whether or not this machine has it">];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

#endif
