// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-differentiate="wrt=0,1 results=0" -canonicalize -cse -weft-partition | FileCheck %s

// What a convolution gives is saved as it writes it and as the backward reads it.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[CONV:.*]] = weft.conv
// CHECK: %[[SAVED:.*]] = weft.relayout %[[CONV]] : tensor<2x16x4x4xf32> -> tensor<2x16x4x4xf32, #weft.layout<[0, 2, 3, 1]>>
// CHECK: return %{{.*}}, %[[SAVED]]
// CHECK-LABEL: func.func @backward(
// CHECK-SAME: %[[IMAGE:[a-z0-9]*]]: tensor<2x16x4x4xf32, #weft.layout<[0, 2, 3, 1]>> {weft.kind = "input", weft.name = "saved 0"}
// CHECK: weft.relayout %[[IMAGE]]
func.func @main(%x: tensor<2x16x4x4xf32>, %w: tensor<16x16x1x1xf32>) -> tensor<2x16x4x4xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.conv %x, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1
    : tensor<2x16x4x4xf32>, tensor<16x16x1x1xf32> -> tensor<2x16x4x4xf32>
  %1 = weft.mul %0, %0 : tensor<2x16x4x4xf32>
  return %1 : tensor<2x16x4x4xf32>
}

// -----

// Of few channels a convolution writes row by row.
// CHECK-LABEL: func.func @forward(
// CHECK-NOT: weft.relayout
// CHECK-LABEL: func.func @backward(
// CHECK-NOT: weft.relayout
func.func @main(%x: tensor<2x16x4x16xf32>, %w: tensor<2x16x1x1xf32>) -> tensor<2x2x4x16xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.conv %x, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1
    : tensor<2x16x4x16xf32>, tensor<2x16x1x1xf32> -> tensor<2x2x4x16xf32>
  %1 = weft.mul %0, %0 : tensor<2x2x4x16xf32>
  return %1 : tensor<2x2x4x16xf32>
}
