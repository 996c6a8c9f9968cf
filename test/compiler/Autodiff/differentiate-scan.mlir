// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-differentiate="wrt=0,1,2 results=0" -canonicalize -cse | FileCheck %s

// The scan stacks the sum with its contraction, too; the one for the gradients runs in the other
// direction, and computes neither that nor what the states were. It reads no term of the sum.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[XS:.*]]: tensor<9x4x8xf32>, %[[H:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x8xf32>, %[[G:.*]]: tensor<9x4x8xf32>
// CHECK: %[[F:.*]]:3 = weft.scan 9 carry
// CHECK: %[[D:.*]] = weft.dot_general
// CHECK: %[[SUM:.*]] = weft.add %[[D]]
// CHECK: weft.yield %{{.*}}, %{{.*}}, %[[SUM]]
// CHECK: %[[INIT:.*]] = weft.reshape %[[H]]
// CHECK: %[[OTHERS:.*]] = weft.slice %[[F]]#1 [0, 0, 0] to [8, 4, 8]
// CHECK: %[[STATES:.*]] = weft.concat %[[INIT]], %[[OTHERS]] dim 0
// CHECK: %[[B:.*]]:3 = weft.scan 9 reverse carry({{.*}}) over(%{{[a-z0-9]*}} = %[[STATES]] : tensor<9x4x8xf32>, %{{[a-z0-9]*}} = %[[F]]#2 : tensor<9x4x8xf32>, %{{[a-z0-9]*}} = %[[G]] :
// CHECK-NOT: contract [1] x [1]
// CHECK: weft.yield
// CHECK: return %[[F]]#1, %[[B]]#2, %[[B]]#0, %[[B]]#1
func.func @main(%xs: tensor<9x4x8xf32>, %h: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<9x4x8xf32>
    attributes {weft.entry = #weft.entry<main>} {
  %0:2 = weft.scan 9 carry(%s = %h : tensor<4x8xf32>) over(%x = %xs : tensor<9x4x8xf32>)
      with(%v = %w : tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<9x4x8xf32>) {
    %1 = weft.dot_general %s, %v batch [] x [] contract [1] x [1] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %2 = weft.add %1, %x : tensor<4x8xf32>
    %3 = weft.tanh %2 : tensor<4x8xf32>
    weft.yield %3, %3 : tensor<4x8xf32>, tensor<4x8xf32>
  }
  return %0#1 : tensor<9x4x8xf32>
}
