// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-sink-sums | FileCheck %s

// The gradients of a weight and a bias. What is a sequence already is not stacked again.
// CHECK-LABEL: @gradients(
// CHECK-SAME: %[[XS:.*]]: tensor<9x4x8xf32>, %[[D:.*]]: tensor<4x16xf32>, %[[W:.*]]: tensor<16x8xf32>)
// CHECK: %[[S:.*]]:4 = weft.scan 9 reverse
// CHECK: %[[DW:.*]] = weft.dot_general %[[S]]#3, %[[XS]] batch [] x [] contract [0, 1] x [0, 1]
// CHECK: %[[SUM:.*]] = weft.add %[[W]], %[[DW]]
// CHECK: %[[DB:.*]] = weft.reduce <sum> %[[S]]#3 dims [0, 1]
// CHECK: return %[[S]]#0, %[[SUM]], %[[DB]]
func.func @gradients(%xs: tensor<9x4x8xf32>, %d: tensor<4x16xf32>, %w: tensor<16x8xf32>)
    -> (tensor<4x16xf32>, tensor<16x8xf32>, tensor<16xf32>) {
  %zero = weft.constant dense<0.0> : tensor<16xf32>
  %0:3 = weft.scan 9 reverse carry(%g = %d : tensor<4x16xf32>, %dw = %w : tensor<16x8xf32>, %db = %zero : tensor<16xf32>)
      over(%x = %xs : tensor<9x4x8xf32>) -> (tensor<4x16xf32>, tensor<16x8xf32>, tensor<16xf32>) {
    %1 = weft.tanh %g : tensor<4x16xf32>
    %2 = weft.dot_general %1, %x batch [] x [] contract [0] x [0] : tensor<4x16xf32>, tensor<4x8xf32> -> tensor<16x8xf32>
    %3 = weft.add %dw, %2 : tensor<16x8xf32>
    %4 = weft.reduce <sum> %1 dims [0] : tensor<4x16xf32> -> tensor<16xf32>
    %5 = weft.add %4, %db : tensor<16xf32>
    weft.yield %1, %3, %5 : tensor<4x16xf32>, tensor<16x8xf32>, tensor<16xf32>
  }
  return %0#0, %0#1, %0#2 : tensor<4x16xf32>, tensor<16x8xf32>, tensor<16xf32>
}

// A step reads the sum.
// CHECK-LABEL: @read(
// CHECK-NOT: weft.reduce {{.*}} dims [0, 1]
func.func @read(%xs: tensor<9x4x8xf32>, %h: tensor<8xf32>) -> tensor<8xf32> {
  %0 = weft.scan 9 carry(%s = %h : tensor<8xf32>) over(%x = %xs : tensor<9x4x8xf32>) -> (tensor<8xf32>) {
    %1 = weft.broadcast_in_dim %s dims [1] : tensor<8xf32> -> tensor<4x8xf32>
    %2 = weft.mul %1, %x : tensor<4x8xf32>
    %3 = weft.reduce <sum> %2 dims [0] : tensor<4x8xf32> -> tensor<8xf32>
    %4 = weft.add %s, %3 : tensor<8xf32>
    weft.yield %4 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
