// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-schedule-kernels=isa=avx2 -weft-emit-kernels=isa=avx2 | FileCheck %s
// RUN: %if avx512 %{ weft-check-kernels %s %}

// Columns are divided among threads; a slab of them goes by all groups, whose rows come to lie in
// lanes, in one vector or two as there are rows left. A group ends where the data says, within
// those that there are.
// CHECK-LABEL: func.func private @grouped
// CHECK-SAME:  weft.schedule = #weft.schedule<grouped_matmul{{.*}} {chunk = 256 : i64, claim = 1 : i64, groups = 2 : i64, lanes = 8 : i64, narrow_rows = 6 : i64, piece = 48 : i64, rows = 6 : i64, slab = 8 : i64, unroll = 4 : i64}
// CHECK:       scf.for
// CHECK:         memref.load %{{.*}} : memref<8xi32
// CHECK:         arith.index_cast
// CHECK:         arith.maxsi
// CHECK:         arith.minsi
// Six columns for each vector of rows.
// CHECK:         scf.if
// CHECK-COUNT-24:  vector.fma
// CHECK-NOT:       vector.fma
// CHECK:         } else {
// CHECK-COUNT-48:  vector.fma
func.func private @grouped(%x: tensor<100x512xf32>, %w: tensor<8x96x512xf32>, %e: tensor<8xi32>)
    -> tensor<100x96xf32> attributes {weft.kernel = "grouped_dot"} {
  %0 = weft.grouped_dot %x, %w, %e
    : tensor<100x512xf32>, tensor<8x96x512xf32>, tensor<8xi32> -> tensor<100x96xf32>
  return %0 : tensor<100x96xf32>
}
