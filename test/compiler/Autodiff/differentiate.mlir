// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-differentiate="wrt=0,1 results=0" | FileCheck %s

// The cotangent of a product, and of a sum over what a bias was spread over.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<8xf32>,
// CHECK-SAME: %[[G:.*]]: tensor<4x8xf32> {weft.kind = "input", weft.name = "gradient 0"})
// CHECK-SAME: -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>)
// CHECK-SAME: weft.joint_inputs = 2 : i64, weft.joint_results = 1 : i64, weft.joint_wrt = array<i64: 0, 1>
func.func @main(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> attributes {weft.entry = #weft.entry<main>} {
  // CHECK: %[[SPREAD:.*]] = weft.broadcast_in_dim %[[B]]
  // CHECK: %[[Y:.*]] = weft.mul %[[X]], %[[SPREAD]]
  %0 = weft.broadcast_in_dim %b dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %1 = weft.mul %x, %0 : tensor<4x8xf32>
  // CHECK: %[[GX:.*]] = weft.mul %[[G]], %[[SPREAD]]
  // CHECK: %[[GS:.*]] = weft.mul %[[G]], %[[X]]
  // CHECK: %[[GB:.*]] = weft.reduce <sum> %[[GS]] dims [0]
  // CHECK: return %[[Y]], %[[GX]], %[[GB]]
  return %1 : tensor<4x8xf32>
}

// -----

// A value that is used twice sums its cotangents; what does not reach the result has zero.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>, %[[G:.*]]: tensor<4xf32>
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {weft.entry = #weft.entry<main>} {
  // CHECK: %[[E:.*]] = weft.exp %[[X]]
  // CHECK: %[[GE:.*]] = weft.mul %[[G]], %[[E]]
  // CHECK: %[[SUM:.*]] = weft.add %[[G]], %[[GE]]
  // CHECK: %[[ZERO:.*]] = weft.constant dense<0.000000e+00> : tensor<4xf32>
  // CHECK: return %{{.*}}, %[[SUM]], %[[ZERO]]
  %0 = weft.exp %x : tensor<4xf32>
  %1 = weft.add %0, %x : tensor<4xf32>
  %2 = weft.floor %y : tensor<4xf32>
  %3 = weft.add %1, %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}

// -----

// relu gives nothing at 0, and a detached value has no cotangent.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>, %[[G:.*]]: tensor<4xf32>
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {weft.entry = #weft.entry<main>} {
  // CHECK: %[[Z:.*]] = weft.constant
  // CHECK: %[[R:.*]] = weft.max %[[X]], %[[Z]]
  // CHECK: %[[D:.*]] = weft.reshape %[[Y]] {weft.stops_gradient = true}
  // CHECK: %[[GR:.*]] = weft.mul %[[G]], %[[D]]
  // CHECK-NOT: weft.mul
  // CHECK: %[[LOST:.*]] = weft.cmp <le> %[[R]], %[[Z]]
  // CHECK: weft.select %[[LOST]], %{{.*}}, %[[GR]]
  %z = weft.constant dense<0.0> : tensor<4xf32>
  %0 = weft.max %x, %z {weft.subgradient = "zero"} : tensor<4xf32>
  %1 = weft.reshape %y {weft.stops_gradient = true} : tensor<4xf32> -> tensor<4xf32>
  %2 = weft.mul %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// A linear layer: neither gradient needs a transposition.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<16x8xf32>, %[[G:.*]]: tensor<4x16xf32>
func.func @main(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>) -> tensor<4x16xf32> attributes {weft.entry = #weft.entry<main>} {
  // CHECK: %[[GX:.*]] = weft.dot_general %[[G]], %[[W]] batch [] x [] contract [1] x [0]
  // CHECK-SAME: -> tensor<4x8xf32>
  // CHECK: %[[GW:.*]] = weft.dot_general %[[G]], %[[X]] batch [] x [] contract [0] x [0]
  // CHECK-SAME: -> tensor<16x8xf32>
  // CHECK: return %{{.*}}, %[[GX]], %[[GW]]
  %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1] : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// -----

// A strided slice goes back between zeros.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[G:[a-z0-9]*]]: tensor<3xf32> {
func.func @main(%x: tensor<8xf32>, %y: tensor<3xf32>) -> tensor<3xf32> attributes {weft.entry = #weft.entry<main>} {
  // CHECK: %[[SPLIT:.*]] = weft.reshape %[[G]] : tensor<3xf32> -> tensor<3x1xf32>
  // CHECK: %[[WIDE:.*]] = weft.pad %[[SPLIT]], %{{.*}} low [0, 0] high [0, 1]
  // CHECK: %[[FLAT:.*]] = weft.reshape %[[WIDE]] : tensor<3x2xf32> -> tensor<6xf32>
  // CHECK: weft.pad %[[FLAT]], %{{.*}} low [2] high [0] : {{.*}} -> tensor<8xf32>
  %0 = weft.slice %x [2] to [7] by [2] : tensor<8xf32> -> tensor<3xf32>
  %1 = weft.add %0, %y : tensor<3xf32>
  return %1 : tensor<3xf32>
}

// -----

// A norm's statistics are computed once: the op is decomposed.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: weft.layer_norm
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8xf32>) -> tensor<4x8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.layer_norm %x weight %w : tensor<8xf32> over 1 eps 1.0e-05 : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// A derivative that is given: the value's own steps have none; with dims it is that of a sum.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[S:.*]]: tensor<4x8xf32>, %[[G:.*]]: tensor<4xf32>
func.func @main(%x: tensor<4x8xf32>, %s: tensor<4x8xf32>) -> tensor<4xf32> attributes {weft.entry = #weft.entry<main>} {
  // CHECK: %[[SUM:.*]] = weft.reduce <sum> %[[X]]
  // CHECK: %[[Y:.*]] = weft.with_slopes %[[SUM]] along %[[X]] by %[[S]] dims [1]
  // CHECK: %[[SPREAD:.*]] = weft.broadcast_in_dim %[[G]] dims [0]
  // CHECK: %[[GX:.*]] = weft.mul %[[SPREAD]], %[[S]]
  // CHECK: %[[ZERO:.*]] = weft.constant
  // CHECK: return %[[Y]], %[[GX]], %[[ZERO]]
  %0 = weft.reduce <sum> %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %1 = weft.with_slopes %0 along %x by %s dims [1] : tensor<4xf32> (tensor<4x8xf32>) by (tensor<4x8xf32>)
  return %1 : tensor<4xf32>
}
