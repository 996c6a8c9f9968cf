// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-differentiate="wrt=0 results=0" -canonicalize -cse | FileCheck %s

// Elements of a window are compared with one another, never with what the forward has found.
// CHECK-LABEL: func.func @main(
// CHECK: %[[FIRST:.*]] = weft.slice %[[X:.*]] [0, 0]
// CHECK: %[[SECOND:.*]] = weft.slice %[[X]] [0, 1]
// CHECK: weft.cmp <gt> %[[SECOND]], %[[FIRST]]
// CHECK: weft.cmp <ne> %[[SECOND]], %[[SECOND]]
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x4xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.reduce_window <max> %x window [1, 2] strides [1, 2] dilations [1, 1] : tensor<4x8xf32> -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// A running minimum is where none before it was less.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8xf32>
// CHECK: %[[SO_FAR:.*]] = weft.cumulative <min> %[[X]] dim 1
// CHECK: %[[FIRST:.*]] = weft.slice %[[X]] [0, 0] to [4, 1]
// CHECK: %[[REST:.*]] = weft.slice %[[SO_FAR]] [0, 0] to [4, 7]
// CHECK: %[[BEFORE:.*]] = weft.concat %[[FIRST]], %[[REST]] dim 1
// CHECK: weft.cmp <le> %[[X]], %[[BEFORE]]
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.cumulative <min> %x dim 1 : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// Of one element it is that.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[G:[^:]*]]: tensor<4x1xf32> {weft.kind = "input", weft.name = "gradient 0"}
// CHECK: return %{{.*}}, %[[G]]
func.func @main(%x: tensor<4x1xf32>) -> tensor<4x1xf32> attributes {weft.entry = #weft.entry<main>} {
  %0 = weft.cumulative <min> %x dim 1 : tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}
