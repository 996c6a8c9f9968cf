// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-join-pads | FileCheck %s

// In any order, with a gap that is zero, and another term.
// CHECK-LABEL: @gates(
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>, %[[Y:.*]]: tensor<2x3xf32>, %[[Z:.*]]: tensor<2x9xf32>)
// CHECK: %[[GAP:.*]] = weft.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK: %[[C:.*]] = weft.concat %[[Y]], %[[GAP]], %[[X]] dim 1
// CHECK: %[[S:.*]] = weft.add %[[Z]], %[[C]]
// CHECK: return %[[S]]
func.func @gates(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %z: tensor<2x9xf32>) -> tensor<2x9xf32> {
  %zero = weft.constant dense<0.0> : tensor<f32>
  %a = weft.pad %x, %zero low [0, 6] high [0, 0] : tensor<2x3xf32>, tensor<f32> -> tensor<2x9xf32>
  %b = weft.pad %y, %zero low [0, 0] high [0, 6] : tensor<2x3xf32>, tensor<f32> -> tensor<2x9xf32>
  %t = weft.add %a, %z : tensor<2x9xf32>
  %s = weft.add %t, %b : tensor<2x9xf32>
  return %s : tensor<2x9xf32>
}

// -----

// CHECK-LABEL: @overlapping(
// CHECK-NOT: weft.concat
func.func @overlapping(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x5xf32> {
  %zero = weft.constant dense<0.0> : tensor<f32>
  %a = weft.pad %x, %zero low [0, 2] high [0, 0] : tensor<2x3xf32>, tensor<f32> -> tensor<2x5xf32>
  %b = weft.pad %y, %zero low [0, 0] high [0, 2] : tensor<2x3xf32>, tensor<f32> -> tensor<2x5xf32>
  %s = weft.add %a, %b : tensor<2x5xf32>
  return %s : tensor<2x5xf32>
}

// -----

// Not with zeros.
// CHECK-LABEL: @ones(
// CHECK-NOT: weft.concat
func.func @ones(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x6xf32> {
  %one = weft.constant dense<1.0> : tensor<f32>
  %a = weft.pad %x, %one low [0, 3] high [0, 0] : tensor<2x3xf32>, tensor<f32> -> tensor<2x6xf32>
  %b = weft.pad %y, %one low [0, 0] high [0, 3] : tensor<2x3xf32>, tensor<f32> -> tensor<2x6xf32>
  %s = weft.add %a, %b : tensor<2x6xf32>
  return %s : tensor<2x6xf32>
}
