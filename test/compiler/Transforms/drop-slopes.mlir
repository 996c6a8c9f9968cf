// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -weft-drop-slopes | FileCheck %s

// A value takes the place of the op that gives it a derivative, and what is detached is like others.
// CHECK-LABEL: func.func @given(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
func.func @given(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %[[Y:.*]] = weft.exp %[[X]] : tensor<4xf32>
  // CHECK: %[[D:.*]] = weft.reshape %[[Y]] : tensor<4xf32> -> tensor<4xf32>
  // CHECK-NOT: with_slopes
  // CHECK: return %[[D]]
  %0 = weft.exp %x : tensor<4xf32>
  %1 = weft.with_slopes %0 along %x by %x dims [] : tensor<4xf32> (tensor<4xf32>) by (tensor<4xf32>)
  %2 = weft.reshape %1 {weft.stops_gradient = true} : tensor<4xf32> -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// Kinks are said to nobody.
// CHECK-LABEL: func.func @kink(
// CHECK: weft.max %{{.*}}, %{{.*}} : tensor<4xf32>
func.func @kink(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = weft.max %x, %y {weft.subgradient = "zero"} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
