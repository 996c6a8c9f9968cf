// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -canonicalize | FileCheck %s

#columns = #weft.layout<[1, 0]>

// CHECK-LABEL: @nothing_moves
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3xf32>
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]]
func.func @nothing_moves(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>,
    tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = weft.broadcast_in_dim %x dims [0, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %1 = weft.reshape %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %2 = weft.transpose %x perm [0, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %3 = weft.slice %x [0, 0] to [2, 3] by [1, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %4 = weft.concat %x dim 1 : tensor<2x3xf32> -> tensor<2x3xf32>
  %5 = weft.relayout %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %6 = weft.reduce <sum> %x dims [] : tensor<2x3xf32> -> tensor<2x3xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: @something_moves
// CHECK: weft.transpose
// CHECK: weft.broadcast_in_dim
// CHECK: weft.slice
// CHECK: weft.reduce
func.func @something_moves(%x: tensor<3x3xf32>)
    -> (tensor<3x3xf32>, tensor<3x3xf32>, tensor<2x3xf32>, tensor<3x3xf32, #columns>) {
  %0 = weft.transpose %x perm [1, 0] : tensor<3x3xf32> -> tensor<3x3xf32>
  %1 = weft.broadcast_in_dim %x dims [1, 0] : tensor<3x3xf32> -> tensor<3x3xf32>
  %2 = weft.slice %x [0, 0] to [3, 3] by [2, 1] : tensor<3x3xf32> -> tensor<2x3xf32>
  %3 = weft.reduce <sum> %x dims [] : tensor<3x3xf32> -> tensor<3x3xf32, #columns>
  return %0, %1, %2, %3 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<2x3xf32>, tensor<3x3xf32, #columns>
}

// CHECK-LABEL: @constants
// CHECK-DAG: %[[T:.*]] = weft.constant dense<{{\[\[}}1, 4], [2, 5], [3, 6]]> : tensor<3x2xi32>
// CHECK-DAG: %[[R:.*]] = weft.constant dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi32>
// CHECK-DAG: %[[S:.*]] = weft.constant dense<{{\[\[}}2, 3]]> : tensor<1x2xi32>
// CHECK-DAG: %[[B:.*]] = weft.constant dense<{{\[\[}}7, 7], [8, 8]]> : tensor<2x2xi32>
// CHECK: return %[[T]], %[[R]], %[[S]], %[[B]]
func.func @constants() -> (tensor<3x2xi32>, tensor<6xi32>, tensor<1x2xi32>, tensor<2x2xi32>) {
  %c = weft.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %d = weft.constant dense<[[7], [8]]> : tensor<2x1xi32>
  %0 = weft.transpose %c perm [1, 0] : tensor<2x3xi32> -> tensor<3x2xi32>
  %1 = weft.reshape %c : tensor<2x3xi32> -> tensor<6xi32>
  %2 = weft.slice %c [0, 1] to [1, 3] by [1, 1] : tensor<2x3xi32> -> tensor<1x2xi32>
  %3 = weft.broadcast_in_dim %d dims [0, 1] : tensor<2x1xi32> -> tensor<2x2xi32>
  return %0, %1, %2, %3 : tensor<3x2xi32>, tensor<6xi32>, tensor<1x2xi32>, tensor<2x2xi32>
}

// CHECK-LABEL: @splats
// CHECK-DAG: %[[B:.*]] = weft.constant dense<1.000000e+00> : tensor<64x1024x1024xf32>
// CHECK-DAG: %[[L:.*]] = weft.constant dense<1.000000e+00> : tensor<4x4xf32, #weft.layout<[1, 0]>>
// CHECK-DAG: %[[M:.*]] = weft.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-DAG: %[[Z:.*]] = weft.constant dense<0> : tensor<1x8xi64>
// CHECK: return %[[B]], %[[L]], %[[M]], %[[Z]]
func.func @splats() -> (tensor<64x1024x1024xf32>, tensor<4x4xf32, #columns>, tensor<4xf32>, tensor<1x8xi64>) {
  %one = weft.constant dense<1.0> : tensor<f32>
  %0 = weft.broadcast_in_dim %one dims [] : tensor<f32> -> tensor<64x1024x1024xf32>
  %square = weft.constant dense<1.0> : tensor<4x4xf32>
  %1 = weft.relayout %square : tensor<4x4xf32> -> tensor<4x4xf32, #columns>
  %2 = weft.reduce <max> %square dims [1] : tensor<4x4xf32> -> tensor<4xf32>
  %3 = weft.iota 0 : tensor<1x8xi64>
  return %0, %1, %2, %3 : tensor<64x1024x1024xf32>, tensor<4x4xf32, #columns>, tensor<4xf32>, tensor<1x8xi64>
}

// A float sum of a splat rounds; a broadcast of elements takes memory.
// CHECK-LABEL: @constants_stay
// CHECK: weft.reduce <sum>
// CHECK: weft.broadcast_in_dim
func.func @constants_stay() -> (tensor<4xf32>, tensor<40x2xf32>) {
  %square = weft.constant dense<0.1> : tensor<4x4xf32>
  %pair = weft.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = weft.reduce <sum> %square dims [1] : tensor<4x4xf32> -> tensor<4xf32>
  %1 = weft.broadcast_in_dim %pair dims [1] : tensor<2xf32> -> tensor<40x2xf32>
  return %0, %1 : tensor<4xf32>, tensor<40x2xf32>
}

// CHECK-LABEL: @empty
// CHECK: weft.slice
func.func @empty() -> tensor<0xf32> {
  %c = weft.constant dense<1.0> : tensor<4xf32>
  %0 = weft.slice %c [2] to [2] by [1] : tensor<4xf32> -> tensor<0xf32>
  return %0 : tensor<0xf32>
}
