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

    `weft.attention`, `weft.grouped_dot` and `weft.winograd_conv` stay, on their logical
    operands behind unrealized casts, for their emitters; so do `weft.cumulative`,
    `weft.scatter` and `weft.sort` on row-major physical tensors, `weft.advance`,
    `weft.assert` and `weft.torch_fallback`, which gets its element types as
    `operand_dtypes` and `result_dtypes`. Arguments and results of entries keep their
    logical types as `weft.type`. Fails on the other composite ops, which are decomposed
    before.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// Linalg to loops
//===----------------------------------------------------------------------===//

def LowerToLoops : Pass<"weft-lower-to-loops", "::mlir::ModuleOp"> {
  let summary = "Emit every kernel, and turn entries into calls on memrefs";
  let description = [{
    Kernels go through `emitKernel`; one that is only declared is taken to be linked in by
    someone else, or has its loops in the function that `weft.loops` names. Entries take
    their results, the thread's number and the number of threads as arguments; a result is
    written where the caller wants it by the kernel that makes it. One that is an argument,
    or comes a second time, is marked as an alias.
    Fallbacks, asserts and copies become calls to declarations with `weft.service`.
    A `weft.loop` becomes an `scf.for` around the calls of its step: states are carried as
    memrefs, in two buffers that steps write in turns, or in the rows of a stacked output.

    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> attributes {weft.entry = #weft.entry<main>} {
      %0 = call @k(%x) : (tensor<8xf32>) -> tensor<8xf32>
      %1 = call @k(%0) : (tensor<8xf32>) -> tensor<8xf32>
      return %1 : tensor<8xf32>
    }
    // becomes
    func.func @main(%x: memref<8xf32>, %r: memref<8xf32>, %thread: index, %threads: index) {
      %0 = memref.alloc() : memref<8xf32>
      call @k(%x, %0, %scratch, %thread, %threads)
      call @k(%0, %r, %scratch, %thread, %threads)
    ```
  }];
  let options = [
    Option<"isa", "isa", "std::string", "\"native\"",
           "native, avx2, avx512 or amx, whether or not this machine has it">,
    Option<"threads", "threads", "int64_t", "2",
           "threads that scratch memory is kept for, at the most">
  ];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def PlanMemory : Pass<"weft-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Lay the buffers of an entry out in one arena";
  let description = [{
    Every `memref.alloc` becomes a view of a new argument, at a multiple of 64 bytes; two
    share bytes when no call needs both; what a loop uses of the outside is needed in all of
    its steps. `weft.arena_bytes` is the size of the arena and
    `weft.liveness_bound` what any plan needs at least: the most bytes of tensors, and of
    threads' scratch memory, that are alive at once.

    ```mlir
    %0 = memref.alloc() : memref<8xf32>
    // becomes
    %0 = memref.view %arena[%c64][] : memref<128xi8> to memref<8xf32>
    ```

    Declines on entries that have an arena.
  }];
  let statistics = [
    Statistic<"arenaBytes", "arena-bytes", "bytes of all arenas">,
    Statistic<"boundBytes", "bound-bytes", "bytes that any plan needs for tensors">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def InsertBarriers : Pass<"weft-insert-barriers", "::mlir::ModuleOp"> {
  let summary = "Let the team wait where a call needs what another thread did";
  let description = [{
    Inserts `call @weft_barrier()` ahead of a call that reads or writes memory which an
    earlier call since the last barrier wrote, or writes what it read. Calls that thread 0
    makes alone need none between them. `@weft_verdict()` is a barrier where all threads
    learn how the asserts and the fallback ahead of it went, so that all stop together.
    `@weft_stage()` begins a stage of the entry (see runtime/Abi.h): ahead of a fallback,
    with what follows that thread 0 runs alone, and ahead of the team's next kernel.

    ```mlir
    call @k(%x, %0, %scratch, %thread, %threads)
    call @weft_barrier() : () -> ()
    call @k(%0, %r, %scratch, %thread, %threads)
    ```
  }];
  let statistics = [Statistic<"barriers", "barriers", "barriers inserted">];
}

//===----------------------------------------------------------------------===//
// Entries to LLVM
//===----------------------------------------------------------------------===//

def LowerEntries : Pass<"weft-lower-entries", "::mlir::ModuleOp"> {
  let summary = "Entries become functions that obey runtime/Abi.h; kernels get modules of their own";
  let description = [{
    Each entry becomes `i32 (WeftContext *, i32 thread, i32 threads)`, and the module gets
    the artifact's table (`weft_artifact`) and manifest. Kernels with a body move into
    unnamed nested modules, one each, ready to be lowered and compiled in parallel; the
    entries call them through declarations that take bare pointers.

    ```mlir
    module {
      llvm.func @k(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64)
      llvm.func internal @weft_entry_main(%context: !llvm.ptr, %thread: i32, %threads: i32) -> i32
      llvm.mlir.global external constant @weft_artifact()
      module { func.func @k(memref<8xf32>, memref<8xf32>, memref<0xi8>, index, index) { ... } }
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

//===----------------------------------------------------------------------===//
// Loops to LLVM
//===----------------------------------------------------------------------===//

def MarkKernelArguments : Pass<"weft-mark-kernel-arguments", "::mlir::func::FuncOp"> {
  let summary = "Tell LLVM which of a kernel's buffers do not overlap";
  let description = [{
    Marks every memref argument of a function with `weft.kernel` as `llvm.noalias`, except those
    that `weft.in_place` lets share memory. The memory plan never lets another result or the
    scratch buffer overlap another buffer of the same call; operands may overlap one another,
    but they are only read.

    ```mlir
    func.func private @k(%a: memref<8xf32>, %out: memref<8xf32>) attributes {weft.kernel = "nest"}
    // becomes
    func.func private @k(%a: memref<8xf32> {llvm.noalias}, %out: memref<8xf32> {llvm.noalias}) ...
    ```

    Declines on functions that are not kernels.
  }];
}

def ExpandBFloat16 : Pass<"weft-expand-bfloat16", "::mlir::ModuleOp"> {
  let summary = "Convert bf16 by arithmetic on bits, and move it as i16";
  let description = [{
    Rounds to nearest, ties to even, and keeps denormals, as PyTorch does: the instructions
    that some targets have for it make zeros of them. On targets without such instructions
    bf16 is moved as i16, too: LLVM would call the compiler's runtime library, which artifacts
    do not link.

    ```mlir
    %0 = arith.truncf %x : vector<8xf32> to vector<8xbf16>
    // becomes
    %bits = arith.bitcast %x : vector<8xf32> to vector<8xi32>
    ...
    %0 = arith.trunci %rounded : vector<8xi32> to vector<8xi16>
    ```

    Expects no arithmetic on bf16, and conversions from and to f32 alone.
  }];
  let options = [
    Option<"hasBFloat16", "has-bfloat16", "bool", "false",
           "the target has instructions for bf16: it is only converted by arithmetic">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
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
