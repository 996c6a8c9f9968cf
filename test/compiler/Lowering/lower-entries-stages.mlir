// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-lower-entries | FileCheck %s
// An entry with a fallback is called once for each stage, and told which.

func.func private @k(%in: memref<8xf32>, %out: memref<8xf32>, %scratch: memref<0xi8>, %thread: index, %threads: index)
    attributes {weft.kernel = "nest", weft.num_inputs = 1 : i64, weft.flops = 8 : i64, weft.bytes = 64 : i64} {
  return
}
func.func private @weft_stage() attributes {weft.service = "stage"}
func.func private @weft_fallback(memref<8xf32> {weft.type = tensor<8xf32>}, memref<8xf32> {weft.type = tensor<8xf32>})
    attributes {weft.service = "fallback", weft.num_inputs = 1 : i64, weft.target = "aten.sin.default", weft.arguments = "[]"}

// CHECK-LABEL: llvm.func internal @weft_entry_program(
// CHECK: %[[STAGE:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i32
// CHECK: llvm.switch %[[STAGE]] : i32, ^[[FIRST:.*]] [
// CHECK-NEXT: 1: ^[[ALONE:.*]],
// CHECK-NEXT: 2: ^[[LAST:.*]]
// CHECK: ^[[FIRST]]:
// CHECK-NEXT: %[[OK:.*]] = llvm.mlir.constant(0 : i32)
// CHECK-NEXT: llvm.return %[[OK]]
// CHECK: ^[[ALONE]]:
// CHECK: llvm.cond_br
// CHECK: ^[[LAST]]:
// CHECK-NEXT: llvm.call @k(
// Nothing precedes the fallback: the caller begins with stage 1 and ends ahead of 3.
// CHECK: llvm.mlir.global internal constant @weft_entries()
// CHECK: %[[BEGIN:.*]] = llvm.mlir.constant(1 : i32)
// CHECK: %[[END:.*]] = llvm.mlir.constant(3 : i32)
// CHECK: llvm.insertvalue %[[BEGIN]], %{{.*}}[5]
// CHECK: llvm.insertvalue %[[END]], %{{.*}}[6]
func.func @program(%x: memref<8xf32> {weft.name = "x", weft.kind = "input", weft.type = tensor<8xf32>},
                %r: memref<8xf32> {weft.kind = "result", weft.type = tensor<8xf32>},
                %arena: memref<64xi8>, %thread: index, %threads: index)
    attributes {weft.entry = #weft.entry<main>, weft.arena_bytes = 64 : i64, weft.liveness_bound = 64 : i64, weft.max_threads = 4 : i64} {
  %c0 = arith.constant 0 : index
  %s = memref.view %arena[%c0][] : memref<64xi8> to memref<0xi8>
  %a = memref.view %arena[%c0][] : memref<64xi8> to memref<8xf32>
  call @weft_stage() : () -> ()
  call @weft_fallback(%x, %a) : (memref<8xf32>, memref<8xf32>) -> ()
  call @weft_stage() : () -> ()
  call @k(%a, %r, %s, %thread, %threads) : (memref<8xf32>, memref<8xf32>, memref<0xi8>, index, index) -> ()
  return
}
