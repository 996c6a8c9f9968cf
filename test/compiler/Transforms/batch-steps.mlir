// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-batch-steps | FileCheck %s

// The product of the input is one of all steps, with its bias; that of the state stays.
// CHECK-LABEL: @projection(
// CHECK-SAME: %[[XS:.*]]: tensor<9x4x8xf32>, %[[H:.*]]: tensor<4x16xf32>, %[[W:.*]]: tensor<16x8xf32>, %[[U:.*]]: tensor<16x16xf32>, %[[B:.*]]: tensor<16xf32>)
// CHECK: %[[P:.*]] = weft.dot_general %[[XS]], %[[W]] batch [] x [] contract [2] x [1] : tensor<9x4x8xf32>, tensor<16x8xf32> -> tensor<9x4x16xf32>
// CHECK: %[[ONE:.*]] = weft.broadcast_in_dim %[[B]] dims [1]
// CHECK: %[[ALL:.*]] = weft.broadcast_in_dim %[[ONE]] dims [1, 2] : tensor<4x16xf32> -> tensor<9x4x16xf32>
// CHECK: %[[G:.*]] = weft.add %[[P]], %[[ALL]]
// CHECK: weft.scan 9 carry(%[[S:.*]] = %[[H]] : tensor<4x16xf32>) over(%{{.*}} = %[[XS]] : tensor<9x4x8xf32>, %[[X:.*]] = %[[G]] : tensor<9x4x16xf32>)
// CHECK: %[[R:.*]] = weft.dot_general %[[S]], %
// CHECK: weft.add %[[R]], %[[X]]
func.func @projection(%xs: tensor<9x4x8xf32>, %h: tensor<4x16xf32>, %w: tensor<16x8xf32>, %u: tensor<16x16xf32>,
                      %b: tensor<16xf32>) -> tensor<4x16xf32> {
  %0 = weft.scan 9 carry(%s = %h : tensor<4x16xf32>) over(%x = %xs : tensor<9x4x8xf32>)
      with(%v = %w : tensor<16x8xf32>, %r = %u : tensor<16x16xf32>, %c = %b : tensor<16xf32>) -> (tensor<4x16xf32>) {
    %1 = weft.dot_general %x, %v batch [] x [] contract [1] x [1] : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<4x16xf32>
    %2 = weft.broadcast_in_dim %c dims [1] : tensor<16xf32> -> tensor<4x16xf32>
    %3 = weft.add %1, %2 : tensor<4x16xf32>
    %4 = weft.dot_general %s, %r batch [] x [] contract [1] x [1] : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
    %5 = weft.add %4, %3 : tensor<4x16xf32>
    weft.yield %5 : tensor<4x16xf32>
  }
  return %0 : tensor<4x16xf32>
}

// What a contraction reads goes with it: a row, transposed, converted and normalized.
// CHECK-LABEL: @chain(
// CHECK: weft.reshape %{{.*}} : tensor<9x1x8x4xf32> -> tensor<9x8x4xf32>
// CHECK: weft.transpose %{{.*}} perm [0, 2, 1] : tensor<9x8x4xf32> -> tensor<9x4x8xf32>
// CHECK: weft.reduce <sum> %{{.*}} dims [2] : tensor<9x4x8xf32> -> tensor<9x4xf32>
// CHECK: weft.broadcast_in_dim %{{.*}} dims [0, 1] : tensor<9x4xf32> -> tensor<9x4x8xf32>
// CHECK: weft.slice %{{.*}} [0, 0, 1] to [9, 4, 7] by [1, 1, 2] : tensor<9x4x8xf32> -> tensor<9x4x3xf32>
// CHECK: weft.dot_general %{{.*}} contract [2] x [0]
// CHECK: weft.scan
// CHECK-NEXT: weft.add
// CHECK-NEXT: weft.yield
func.func @chain(%xs: tensor<9x1x8x4xf32>, %h: tensor<4x5xf32>, %w: tensor<3x5xf32>) -> tensor<4x5xf32> {
  %0 = weft.scan 9 carry(%s = %h : tensor<4x5xf32>) over(%x = %xs : tensor<9x1x8x4xf32>)
      with(%v = %w : tensor<3x5xf32>) -> (tensor<4x5xf32>) {
    %1 = weft.reshape %x : tensor<1x8x4xf32> -> tensor<8x4xf32>
    %2 = weft.transpose %1 perm [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
    %3 = weft.reduce <sum> %2 dims [1] : tensor<4x8xf32> -> tensor<4xf32>
    %4 = weft.broadcast_in_dim %3 dims [0] : tensor<4xf32> -> tensor<4x8xf32>
    %5 = weft.sub %2, %4 : tensor<4x8xf32>
    %6 = weft.slice %5 [0, 1] to [4, 7] by [1, 2] : tensor<4x8xf32> -> tensor<4x3xf32>
    %7 = weft.dot_general %6, %v batch [] x [] contract [1] x [0] : tensor<4x3xf32>, tensor<3x5xf32> -> tensor<4x5xf32>
    %8 = weft.add %s, %7 : tensor<4x5xf32>
    weft.yield %8 : tensor<4x5xf32>
  }
  return %0 : tensor<4x5xf32>
}

// An elementwise op that no contraction follows is not batched, nor is a contraction that depends on
// the state.
// CHECK-LABEL: @stays(
// CHECK-NEXT: weft.scan
// CHECK-NEXT: weft.exp
// CHECK-NEXT: weft.add
// CHECK-NEXT: weft.dot_general
// CHECK-NEXT: weft.yield
func.func @stays(%xs: tensor<9x4x4xf32>, %h: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = weft.scan 9 carry(%s = %h : tensor<4x4xf32>) over(%x = %xs : tensor<9x4x4xf32>)
      with(%v = %w : tensor<4x4xf32>) -> (tensor<4x4xf32>) {
    %1 = weft.exp %x : tensor<4x4xf32>
    %2 = weft.add %1, %s : tensor<4x4xf32>
    %3 = weft.dot_general %2, %v batch [] x [] contract [1] x [1] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    weft.yield %3 : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}
