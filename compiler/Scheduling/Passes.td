// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef WEFT_SCHEDULING_PASSES_TD
#define WEFT_SCHEDULING_PASSES_TD

include "mlir/Pass/PassBase.td"

def ScheduleKernels : Pass<"weft-schedule-kernels", "::mlir::ModuleOp"> {
  let summary = "Choose how every kernel runs";
  let description = [{
    Writes `weft.schedule` on every private function marked `weft.kernel` that has a body: its
    emitter, whether one thread runs it, and the emitter's numbers, chosen from the shapes, the
    target, and what the kernels before it leave in which caches. A complete schedule on a kernel
    is kept; one that lacks fields is filled. A schedule that cannot be honoured is an error that
    names the field. What the choice compared for a contraction, with the times that
    `Target/CostModel` predicts, is an analysis remark.

    ```mlir
    func.func private @k(%a: tensor<8xf32>) -> tensor<8xf32> attributes {weft.kernel = "nest"}
    // becomes
    func.func private @k(%a: tensor<8xf32>) -> tensor<8xf32>
        attributes {weft.kernel = "nest",
                    weft.schedule = #weft.schedule<loop_nest serial {lanes = 16 : i64}>}
    ```
  }];
  let options = [
    Option<"isa", "isa", "std::string", "\"native\"",
           "native, avx2, avx512 or amx, whether or not this machine has it">,
    Option<"threads", "threads", "int64_t", "2", "threads that work is divided among">,
    Option<"schedule", "schedule", "std::string", "\"\"",
           "fixed numbers of contractions' schedules, as rows=6,chunk=768;dot_general_0:panels=2">
  ];
  // A kernel is matched beside an empty function in the form that it will be emitted in.
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect", "::weft::WeftDialect"];
}

#endif
