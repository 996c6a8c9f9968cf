// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-plan-memory | FileCheck %s

func.func private @k(memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index)
    attributes {weft.kernel = "nest", weft.num_inputs = 1 : i64}

// A chain needs two buffers at a time: the third lies where the first did.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME: %[[ARENA:[a-z0-9]+]]: memref<256xi8>, %{{.*}}: index, %{{.*}}: index) attributes {weft.arena_bytes = 256 : i64, weft.entry = #weft.entry<main>, weft.liveness_bound = 256 : i64}
// CHECK-NOT: memref.alloc
// CHECK: memref.view {{.*}} to memref<0xi8>
// CHECK: %[[FIRST:.*]] = arith.constant [[LOW:[0-9]+]] : index
// CHECK: %[[A:.*]] = memref.view %[[ARENA]][%[[FIRST]]][] : memref<256xi8> to memref<32xf32>
// CHECK: %[[B:.*]] = memref.view %[[ARENA]]
// CHECK: %[[THIRD:.*]] = arith.constant [[LOW]] : index
// CHECK: %[[C:.*]] = memref.view %[[ARENA]][%[[THIRD]]]
// CHECK: call @k(%{{.*}}, %[[A]]
// CHECK: call @k(%[[A]], %[[B]]
// CHECK: call @k(%[[B]], %[[C]]
func.func @chain(%x: memref<32xf32>, %r: memref<32xf32>, %thread: index, %threads: index) attributes {weft.entry = #weft.entry<main>} {
  %s = memref.alloc() : memref<0xi8>
  %a = memref.alloc() : memref<32xf32>
  %b = memref.alloc() : memref<32xf32>
  %c = memref.alloc() : memref<32xf32>
  call @k(%x, %a, %s, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index) -> ()
  call @k(%a, %b, %s, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index) -> ()
  call @k(%b, %c, %s, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index) -> ()
  call @k(%c, %r, %s, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index) -> ()
  return
}

// Scratch memory is alive during its call.
// CHECK-LABEL: func.func @scratch(
// CHECK-SAME: weft.arena_bytes = 256 : i64
// CHECK-SAME: weft.liveness_bound = 256 : i64
func.func private @worker(memref<32xf32>, memref<32xf32>, memref<64xi8>, index, index)
    attributes {weft.kernel = "nest", weft.num_inputs = 1 : i64, weft.scratch_bytes = 64 : i64}
func.func @scratch(%x: memref<32xf32>, %r: memref<32xf32>, %thread: index, %threads: index) attributes {weft.entry = #weft.entry<main>} {
  %none = memref.alloc() : memref<0xi8>
  %a = memref.alloc() : memref<32xf32>
  %all = memref.alloc() : memref<128xi8>
  %size = arith.constant 64 : index
  %offset = arith.muli %thread, %size : index
  %mine = memref.view %all[%offset][] : memref<128xi8> to memref<64xi8>
  call @worker(%x, %a, %mine, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<64xi8>, index, index) -> ()
  call @k(%a, %r, %none, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index) -> ()
  return
}

// What keeps its values lies behind all that is planned.
// CHECK-LABEL: func.func @persistent(
// CHECK-SAME: weft.arena_bytes = 1216 : i64, weft.entry = #weft.entry<main>, weft.liveness_bound = 1216 : i64
// CHECK-DAG: %[[BEHIND:.*]] = arith.constant 192 : index
// CHECK-DAG: memref.view %{{.*}}[%[[BEHIND]]][] : memref<1216xi8> to memref<1024xi8>
func.func @persistent(%x: memref<32xf32>, %r: memref<32xf32>, %thread: index, %threads: index) attributes {weft.entry = #weft.entry<main>} {
  %s = memref.alloc() : memref<0xi8>
  %claims = memref.alloc() {weft.persistent} : memref<1024xi8>
  %a = memref.alloc() : memref<160xi8>
  %c0 = arith.constant 0 : index
  %first = memref.view %a[%c0][] : memref<160xi8> to memref<32xf32>
  call @k(%x, %first, %s, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index) -> ()
  call @k(%first, %r, %s, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index) -> ()
  return
}

// Nothing to plan: an arena of zero bytes.
// CHECK-LABEL: func.func @empty(
// CHECK-SAME: memref<0xi8>
// CHECK-SAME: weft.arena_bytes = 0 : i64
func.func @empty(%thread: index, %threads: index) attributes {weft.entry = #weft.entry<main>} {
  return
}

// Declines: planned already.
// CHECK-LABEL: func.func @planned(%{{[a-z0-9]+}}: memref<64xi8>, %{{.*}}: index, %{{.*}}: index) attributes {weft.arena_bytes = 64 : i64, weft.entry = #weft.entry<main>}
func.func @planned(%arena: memref<64xi8>, %thread: index, %threads: index)
    attributes {weft.entry = #weft.entry<main>, weft.arena_bytes = 64 : i64} {
  return
}

// A buffer lives as long as a view of a part of it.
// CHECK-LABEL: func.func @advanced(
// CHECK-SAME: memref<256xi8>
// CHECK-SAME: weft.liveness_bound = 256 : i64
func.func @advanced(%x: memref<32xf32>, %r: memref<32xf32>, %thread: index, %threads: index) attributes {weft.entry = #weft.entry<main>} {
  %s = memref.alloc() : memref<0xi8>
  %c64 = arith.constant 64 : index
  %a = memref.alloc() : memref<32xf32>
  %b = memref.alloc() : memref<32xf32>
  call @k(%x, %a, %s, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index) -> ()
  %bytes = builtin.unrealized_conversion_cast %a : memref<32xf32> to memref<128xi8>
  %half = memref.view %bytes[%c64][] : memref<128xi8> to memref<32xf32>
  call @k(%x, %b, %s, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index) -> ()
  call @k(%half, %r, %s, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index) -> ()
  return
}

// What a loop reads of the outside is alive in all of its steps; of two buffers inside it, the
// second call's result may lie where nothing of a step is alive any more, but not on the first.
// CHECK-LABEL: func.func @loop(
// CHECK-SAME: weft.arena_bytes = 384 : i64
func.func @loop(%x: memref<32xf32>, %r: memref<32xf32>, %thread: index, %threads: index) attributes {weft.entry = #weft.entry<main>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %s = memref.alloc() : memref<0xi8>
  %a = memref.alloc() : memref<32xf32>
  call @k(%x, %a, %s, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index) -> ()
  scf.for %t = %c0 to %c10 step %c1 {
    %b = memref.alloc() : memref<32xf32>
    %c = memref.alloc() : memref<32xf32>
    func.call @k(%a, %b, %s, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index) -> ()
    func.call @k(%b, %c, %s, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index) -> ()
    func.call @k(%c, %r, %s, %thread, %threads) : (memref<32xf32>, memref<32xf32>, memref<0xi8>, index, index) -> ()
  }
  return
}
