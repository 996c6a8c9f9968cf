// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-differentiate="wrt=0,1,2 results=0" | FileCheck %s

// An operand that no step reads any longer has no state for its gradient, which is zero.
// CHECK-LABEL: func.func @main(
// CHECK: %[[B:.*]]:2 = weft.scan 9 reverse carry(%{{[a-z0-9]*}} = %{{[a-z0-9_]*}} : tensor<4x8xf32>) over
// CHECK-NOT: weft.add %{{.*}} : tensor<8x8xf32>
// CHECK: %[[ZERO:.*]] = weft.constant dense<0.000000e+00> : tensor<8x8xf32>
// CHECK: return %{{.*}}, %[[B]]#1, %[[B]]#0, %[[ZERO]]
func.func @main(%xs: tensor<9x4x8xf32>, %h: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<9x4x8xf32>
    attributes {weft.entry = #weft.entry<main>} {
  %0:2 = weft.scan 9 carry(%s = %h : tensor<4x8xf32>) over(%x = %xs : tensor<9x4x8xf32>)
      with(%v = %w : tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<9x4x8xf32>) {
    %1 = weft.add %s, %x : tensor<4x8xf32>
    %2 = weft.tanh %1 : tensor<4x8xf32>
    weft.yield %2, %2 : tensor<4x8xf32>, tensor<4x8xf32>
  }
  return %0#1 : tensor<9x4x8xf32>
}
