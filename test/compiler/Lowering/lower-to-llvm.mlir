// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s --weft-lower-to-llvm --split-input-file | FileCheck %s

// A kernel takes bare pointers that do not overlap; thread numbers are i64.
// CHECK-LABEL: llvm.func @double
// CHECK-SAME: (%{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-NOT: unrealized_conversion_cast
// CHECK: llvm.fadd %{{.*}} : vector<16xf32>
func.func private @double(%in: memref<64xf32>, %out: memref<64xf32>, %scratch: memref<0xi8>,
                          %thread: index, %threads: index) attributes {weft.kernel = "nest"} {
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %at = arith.muli %thread, %c16 : index
  %x = vector.transfer_read %in[%at], %zero {in_bounds = [true]} : memref<64xf32>, vector<16xf32>
  %y = arith.addf %x, %x : vector<16xf32>
  vector.transfer_write %y, %out[%at] {in_bounds = [true]} : vector<16xf32>, memref<64xf32>
  return
}

// -----

// A function that is no kernel promises nothing about its buffers.
// CHECK-LABEL: llvm.func @helper
// CHECK-NOT: noalias
func.func private @helper(%in: memref<4xf32>) {
  return
}

// -----

// Reductions of a vector may reassociate, or they would be one long chain.
// CHECK-LABEL: llvm.func @sum
// CHECK: "llvm.intr.vector.reduce.fadd"{{.*}}fastmathFlags = #llvm.fastmath<reassoc>
func.func private @sum(%v: vector<16xf32>, %init: f32) -> f32 {
  %0 = vector.reduction <add>, %v, %init : vector<16xf32> into f32
  return %0 : f32
}

// -----

// A result that may lie where an argument does; what else there is does not overlap.
// CHECK-LABEL: llvm.func @shared
// CHECK-SAME: (%{{.*}}: !llvm.ptr {llvm.noalias}, %{{[a-z0-9]+}}: !llvm.ptr, %{{[a-z0-9]+}}: !llvm.ptr {weft.in_place = array<i64: 1>}, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: i64, %{{.*}}: i64)
func.func @shared(%a: memref<8xf32>, %b: memref<8xf32>, %out: memref<8xf32> {weft.in_place = array<i64: 1>},
                  %scratch: memref<0xi8>, %thread: index, %threads: index)
    attributes {weft.kernel = "nest"} {
  return
}

// -----

// Both ways lead to one block, with another value each, so one of them gets a block of its own:
// the translation would insert it otherwise, into modules that others are translating.
// CHECK-LABEL: llvm.func @choose
// CHECK: llvm.cond_br %{{.*}}, ^[[MERGE:bb[0-9]+]](%{{.*}} : f32), ^[[OWN:bb[0-9]+]](
// CHECK: ^[[OWN]](%[[VALUE:.*]]: f32):
// CHECK-NEXT: llvm.br ^[[MERGE]](%[[VALUE]] : f32)
func.func private @choose(%which: i1, %a: f32, %b: f32, %out: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %chosen = scf.if %which -> f32 {
    scf.yield %a : f32
  } else {
    scf.yield %b : f32
  }
  memref.store %chosen, %out[%c0] : memref<1xf32>
  return
}
