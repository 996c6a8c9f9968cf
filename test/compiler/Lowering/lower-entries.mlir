// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-lower-entries | FileCheck %s

memref.global "private" constant @k_table_0 : memref<2xf32> = dense<[1.0, 2.0]>
func.func private @k(%in: memref<8xf32>, %out: memref<8xf32>, %scratch: memref<0xi8>, %thread: index, %threads: index)
    attributes {weft.kernel = "nest", weft.num_inputs = 1 : i64, weft.flops = 8 : i64, weft.bytes = 64 : i64} {
  %table = memref.get_global @k_table_0 : memref<2xf32>
  return
}
func.func private @weft_barrier() attributes {weft.service = "barrier"}
func.func private @weft_verdict() attributes {weft.service = "verdict"}
func.func private @weft_assert(memref<1xi8>)
    attributes {weft.service = "assert", weft.num_inputs = 1 : i64, weft.message = "no"}

// CHECK: llvm.func hidden @k(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64)
// CHECK-LABEL: llvm.func internal @weft_entry_main(
// CHECK-SAME: %[[CONTEXT:[a-z0-9]+]]: !llvm.ptr, %[[THREAD:[a-z0-9]+]]: i32, %[[THREADS:[a-z0-9]+]]: i32) -> i32
// CHECK: %[[FIRST:.*]] = llvm.icmp "eq" %[[THREAD]]
// CHECK: llvm.call @k(
// CHECK: llvm.icmp "sgt" %[[THREADS]]
// CHECK: llvm.call %{{.*}}(%[[CONTEXT]], %[[THREAD]]) : !llvm.ptr, (!llvm.ptr, i32) -> ()
// CHECK: llvm.call @k(
// The first assert to fail leaves its number; the barrier and the way out.
// CHECK: llvm.cond_br %[[FIRST]]
// CHECK: %[[BEFORE:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i32
// CHECK: %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK: %[[NUMBER:.*]] = llvm.select %{{.*}}, %[[BEFORE]], %{{.*}} : i1, i32
// CHECK: llvm.store %[[NUMBER]]
// CHECK: %[[STATUS:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i32
// CHECK: llvm.return %[[STATUS]] : i32
// CHECK: llvm.return %{{.*}} : i32
// CHECK-NOT: func.func @main
func.func @main(%x: memref<8xf32> {weft.name = "x", weft.kind = "input", weft.type = tensor<8xf32>},
                %ok: memref<1xi8> {weft.name = "ok", weft.kind = "input", weft.type = tensor<1xi1>},
                %r: memref<8xf32> {weft.kind = "result", weft.type = tensor<8xf32>},
                %arena: memref<64xi8>, %thread: index, %threads: index)
    attributes {weft.entry = #weft.entry<main>, weft.arena_bytes = 64 : i64, weft.liveness_bound = 64 : i64, weft.max_threads = 4 : i64} {
  %c0 = arith.constant 0 : index
  %s = memref.view %arena[%c0][] : memref<64xi8> to memref<0xi8>
  %a = memref.view %arena[%c0][] : memref<64xi8> to memref<8xf32>
  call @k(%x, %a, %s, %thread, %threads) : (memref<8xf32>, memref<8xf32>, memref<0xi8>, index, index) -> ()
  call @weft_barrier() : () -> ()
  call @k(%a, %r, %s, %thread, %threads) : (memref<8xf32>, memref<8xf32>, memref<0xi8>, index, index) -> ()
  call @weft_assert(%ok) : (memref<1xi8>) -> ()
  call @weft_verdict() : () -> ()
  return
}

// CHECK: module {
// CHECK-NEXT: memref.global "private" constant @k_table_0
// CHECK-NEXT: func.func @k(%{{.*}}: memref<8xf32>
// CHECK: llvm.mlir.global internal constant @weft_manifest("{{.*}}\22arguments\22:[{\22dtype\22:\22f32\22,\22kind\22:\22input\22,\22name\22:\22x\22,\22shape\22:[8],\22strides\22:[1]}
// CHECK: llvm.mlir.global external constant @weft_artifact()
