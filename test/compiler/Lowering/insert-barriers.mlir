// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-insert-barriers | FileCheck %s

func.func private @k(memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index)
    attributes {weft.kernel = "nest", weft.num_inputs = 1 : i64}
func.func private @s(memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index)
    attributes {weft.kernel = "nest", weft.num_inputs = 1 : i64, weft.serial}
func.func private @weft_assert(memref<1xi8>) attributes {weft.service = "assert", weft.num_inputs = 1 : i64}
func.func private @weft_fallback(memref<16xf32>, memref<16xf32>)
    attributes {weft.service = "fallback", weft.num_inputs = 1 : i64}

// Two calls that share nothing but their input need no barrier; the one that reads does.
// Threads' own slices of one scratch buffer do not conflict.
// CHECK-LABEL: func.func @parallel(
// CHECK: call @k
// CHECK-NEXT: call @k
// CHECK-NEXT: call @weft_barrier
// CHECK-NEXT: call @k
// CHECK-NEXT: return
func.func @parallel(%x: memref<16xf32>, %r: memref<16xf32>, %arena: memref<512xi8>, %thread: index, %threads: index)
    attributes {weft.entry = #weft.entry<main>, weft.arena_bytes = 512 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %all = memref.view %arena[%c128][] : memref<512xi8> to memref<128xi8>
  %o = arith.muli %thread, %c64 : index
  %s = memref.view %all[%o][] : memref<128xi8> to memref<64xi8>
  %a = memref.view %arena[%c0][] : memref<512xi8> to memref<16xf32>
  %b = memref.view %arena[%c64][] : memref<512xi8> to memref<16xf32>
  call @k(%x, %a, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  call @k(%x, %b, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  call @k(%a, %r, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  return
}

// Memory that is used again: the reader must be done before the writer starts.
// CHECK-LABEL: func.func @reuse(
// CHECK: call @k
// CHECK-NEXT: call @weft_barrier
// CHECK-NEXT: call @k
func.func @reuse(%x: memref<16xf32>, %r: memref<16xf32>, %arena: memref<128xi8>, %thread: index, %threads: index)
    attributes {weft.entry = #weft.entry<main>, weft.arena_bytes = 128 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %a = memref.view %arena[%c0][] : memref<128xi8> to memref<16xf32>
  %s = memref.view %arena[%c64][] : memref<128xi8> to memref<64xi8>
  call @k(%a, %r, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  call @k(%x, %a, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  return
}

// Thread 0 keeps its own order, but others must wait for it.
// CHECK-LABEL: func.func @serial(
// CHECK: call @s
// CHECK-NEXT: call @s
// CHECK-NEXT: call @weft_barrier
// CHECK-NEXT: call @k
func.func @serial(%x: memref<16xf32>, %r: memref<16xf32>, %arena: memref<192xi8>, %thread: index, %threads: index)
    attributes {weft.entry = #weft.entry<main>, weft.arena_bytes = 192 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %a = memref.view %arena[%c0][] : memref<192xi8> to memref<16xf32>
  %b = memref.view %arena[%c64][] : memref<192xi8> to memref<16xf32>
  %s = memref.view %arena[%c128][] : memref<192xi8> to memref<64xi8>
  call @s(%x, %a, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  call @s(%a, %b, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  call @k(%b, %r, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  return
}

// Counters of claimed parts serve another kernel only when all threads are through with the first.
// CHECK-LABEL: func.func @claims(
// CHECK: call @claiming
// CHECK-NEXT: call @claiming
// CHECK-NEXT: call @weft_barrier
// CHECK-NEXT: call @claiming
// CHECK-NEXT: return
func.func private @claiming(memref<16xf32>, memref<16xf32>, memref<0xi8>, memref<1x1x8xi64>, index, index)
    attributes {weft.kernel = "nest", weft.num_inputs = 1 : i64, weft.claims = 1 : i64}
func.func @claims(%x: memref<16xf32>, %r1: memref<16xf32>, %r2: memref<16xf32>, %r3: memref<16xf32>, %arena: memref<128xi8>, %thread: index, %threads: index)
    attributes {weft.entry = #weft.entry<main>, weft.arena_bytes = 128 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %s = memref.view %arena[%c0][] : memref<128xi8> to memref<0xi8>
  %one = memref.view %arena[%c0][] : memref<128xi8> to memref<1x1x8xi64>
  %two = memref.view %arena[%c64][] : memref<128xi8> to memref<1x1x8xi64>
  call @claiming(%x, %r1, %s, %one, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<0xi8>, memref<1x1x8xi64>, index, index) -> ()
  call @claiming(%x, %r2, %s, %two, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<0xi8>, memref<1x1x8xi64>, index, index) -> ()
  call @claiming(%x, %r3, %s, %one, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<0xi8>, memref<1x1x8xi64>, index, index) -> ()
  return
}

// One verdict serves all asserts, behind the kernels that do not wait for it.
// CHECK-LABEL: func.func @asserts(
// CHECK: call @weft_assert
// CHECK-NEXT: call @k
// CHECK-NEXT: call @weft_assert
// CHECK-NEXT: call @weft_verdict
// CHECK-NEXT: return
func.func @asserts(%ok: memref<1xi8>, %x: memref<16xf32>, %r: memref<16xf32>, %arena: memref<64xi8>, %thread: index, %threads: index)
    attributes {weft.entry = #weft.entry<main>, weft.arena_bytes = 64 : i64} {
  %c0 = arith.constant 0 : index
  %s = memref.view %arena[%c0][] : memref<64xi8> to memref<64xi8>
  call @weft_assert(%ok) : (memref<1xi8>) -> ()
  call @k(%x, %r, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  call @weft_assert(%ok) : (memref<1xi8>) -> ()
  return
}

// A fallback does not run where an assert ahead of it has failed, and what it did is known
// before anything else runs: between stages the caller looks at the status, within one thread 0.
// CHECK-LABEL: func.func @fallbacks(
// CHECK: call @weft_assert
// CHECK-NEXT: call @weft_stage
// CHECK-NEXT: call @weft_fallback
// CHECK-NEXT: call @weft_verdict
// CHECK-NEXT: call @weft_fallback
// CHECK-NEXT: call @weft_verdict
// CHECK-NEXT: call @weft_assert
// CHECK-NEXT: call @weft_verdict
// CHECK-NEXT: return
func.func @fallbacks(%ok: memref<1xi8>, %x: memref<16xf32>, %r: memref<16xf32>, %arena: memref<0xi8>, %thread: index, %threads: index)
    attributes {weft.entry = #weft.entry<main>, weft.arena_bytes = 0 : i64} {
  call @weft_assert(%ok) : (memref<1xi8>) -> ()
  call @weft_fallback(%x, %r) : (memref<16xf32>, memref<16xf32>) -> ()
  call @weft_fallback(%x, %r) : (memref<16xf32>, memref<16xf32>) -> ()
  call @weft_assert(%ok) : (memref<1xi8>) -> ()
  return
}

// Thread 0 goes on alone with what it runs alone; the team's next kernel is another stage.
// CHECK-LABEL: func.func @stages(
// CHECK: call @k
// CHECK-NEXT: call @weft_stage
// CHECK-NEXT: call @weft_fallback
// CHECK-NEXT: call @weft_verdict
// CHECK-NEXT: call @s
// CHECK-NEXT: call @weft_stage
// CHECK-NEXT: call @k
// CHECK-NEXT: call @weft_stage
// CHECK-NEXT: call @weft_fallback
// CHECK-NEXT: call @weft_stage
// CHECK-NEXT: call @k
// CHECK-NEXT: return
func.func @stages(%x: memref<16xf32>, %r: memref<16xf32>, %arena: memref<192xi8>, %thread: index, %threads: index)
    attributes {weft.entry = #weft.entry<main>, weft.arena_bytes = 192 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %a = memref.view %arena[%c0][] : memref<192xi8> to memref<16xf32>
  %s = memref.view %arena[%c64][] : memref<192xi8> to memref<64xi8>
  call @k(%x, %a, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  call @weft_fallback(%a, %r) : (memref<16xf32>, memref<16xf32>) -> ()
  call @s(%r, %a, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  call @k(%a, %r, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  call @weft_fallback(%r, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  call @k(%a, %r, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  return
}

// A view from the middle of a buffer on ends where that does: what lies behind is not read.
// CHECK-LABEL: func.func @advanced(
// CHECK: call @k
// CHECK-NEXT: call @weft_barrier
// CHECK-NEXT: call @k
// CHECK-NEXT: call @k
// CHECK-NEXT: return
func.func @advanced(%x: memref<16xf32>, %r: memref<16xf32>, %arena: memref<128xi8>, %thread: index, %threads: index)
    attributes {weft.entry = #weft.entry<main>, weft.arena_bytes = 128 : i64} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %none = memref.view %arena[%c0][] : memref<128xi8> to memref<0xi8>
  %s = builtin.unrealized_conversion_cast %none : memref<0xi8> to memref<64xi8>
  %a = memref.view %arena[%c0][] : memref<128xi8> to memref<16xf32>
  %bytes = builtin.unrealized_conversion_cast %a : memref<16xf32> to memref<64xi8>
  %half = memref.view %bytes[%c32][] : memref<64xi8> to memref<16xf32>
  %b = memref.view %arena[%c64][] : memref<128xi8> to memref<16xf32>
  call @k(%x, %a, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  call @k(%half, %r, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  call @k(%x, %b, %s, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
  return
}

// In a loop, a step waits for what the one before it wrote; the second call for the first.
// CHECK-LABEL: func.func @loop(
// CHECK: scf.for
// CHECK: call @weft_barrier
// CHECK-NEXT: call @k(%{{[a-z0-9]+}}, %[[A:[a-z0-9_]+]],
// CHECK-NEXT: call @weft_barrier
// CHECK-NEXT: call @k(%[[A]],
// CHECK-NEXT: scf.yield
func.func @loop(%x: memref<16xf32>, %r: memref<10x16xf32>, %arena: memref<64xi8>, %thread: index, %threads: index)
    attributes {weft.entry = #weft.entry<main>, weft.arena_bytes = 64 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %c64 = arith.constant 64 : index
  %s = memref.view %arena[%c0][] : memref<64xi8> to memref<64xi8>
  %none = memref.alloc() : memref<64xi8>
  %0 = scf.for %t = %c0 to %c10 step %c1 iter_args(%h = %x) -> memref<16xf32> {
    %bytes = builtin.unrealized_conversion_cast %r : memref<10x16xf32> to memref<640xi8>
    %at = arith.muli %t, %c64 : index
    %row = memref.view %bytes[%at][] : memref<640xi8> to memref<16xf32>
    %a = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
    func.call @k(%h, %a, %none, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
    func.call @k(%a, %row, %none, %thread, %threads) : (memref<16xf32>, memref<16xf32>, memref<64xi8>, index, index) -> ()
    scf.yield %row : memref<16xf32>
  }
  return
}
