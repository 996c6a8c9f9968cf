// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-merge-convs -canonicalize | FileCheck %s

// A 1x1 window lies within one of 3x3; weights and what is added for each channel are summed
// in f64. What is no convolution stays a summand.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<1x4x8x8xf32> {weft.kind = "input"}, %[[W:[^:]*]]: tensor<4x4x3x3xf32> {weft.kind = "weight"}
// CHECK-SAME: %[[POINT:[^:]*]]: tensor<4x4x1x1xf32>
// CHECK: %[[WIDEPOINT:.*]] = weft.convert %[[POINT]] : tensor<4x4x1x1xf32> -> tensor<4x4x1x1xf64>
// CHECK: %[[PADDED:.*]] = weft.pad %[[WIDEPOINT]], %{{.*}} low [0, 0, 1, 1] high [0, 0, 1, 1]
// CHECK: %[[WIDE:.*]] = weft.convert %[[W]] : tensor<4x4x3x3xf32> -> tensor<4x4x3x3xf64>
// CHECK: %[[SUM:.*]] = weft.add %[[PADDED]], %[[WIDE]]
// CHECK: %[[NARROW:.*]] = weft.convert %[[SUM]] : tensor<4x4x3x3xf64> -> tensor<4x4x3x3xf32>
// CHECK: %[[CONV:.*]] = weft.conv %[[X]], %[[NARROW]] strides [1, 1] pad [1, 1] x [1, 1]
// CHECK: %[[SHIFT:.*]] = weft.add %{{.*}} : tensor<4xf64>
// CHECK: %[[SHIFTED:.*]] = weft.add %[[CONV]], %{{[0-9]+}} : tensor<1x4x8x8xf32>
// CHECK: %[[RESULT:.*]] = weft.add %[[SHIFTED]], %[[X]]
// CHECK: return %[[RESULT]]
func.func @main(%x: tensor<1x4x8x8xf32> {weft.kind = "input"},
                %w: tensor<4x4x3x3xf32> {weft.kind = "weight"},
                %p: tensor<4x4x1x1xf32> {weft.kind = "weight"},
                %b: tensor<4xf32> {weft.kind = "weight"}, %c: tensor<4xf32> {weft.kind = "weight"})
    -> tensor<1x4x8x8xf32> {
  %0 = weft.conv %x, %p strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x8x8xf32>
  %1 = weft.broadcast_in_dim %b dims [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
  %2 = weft.add %0, %1 : tensor<1x4x8x8xf32>
  %3 = weft.conv %x, %w strides [1, 1] pad [1, 1] x [1, 1] dilations [1, 1] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x8xf32>
  %4 = weft.broadcast_in_dim %c dims [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
  %5 = weft.add %3, %4 : tensor<1x4x8x8xf32>
  %6 = weft.add %2, %x : tensor<1x4x8x8xf32>
  %7 = weft.add %6, %5 : tensor<1x4x8x8xf32>
  return %7 : tensor<1x4x8x8xf32>
}

// -----

// Of one channel each: factors of the input are a window, too. What is subtracted is negated.
// CHECK-LABEL: func.func @main(
// CHECK: %[[FACTORS:.*]] = weft.reshape %{{.*}} : tensor<4xf64> -> tensor<4x1x1x1xf64>
// CHECK: %[[PADDED:.*]] = weft.pad %[[FACTORS]], %{{.*}} low [0, 0, 2, 2] high [0, 0, 0, 0]
// CHECK: %[[NEGATED:.*]] = weft.neg %[[PADDED]]
// CHECK: weft.add %{{.*}}, %[[NEGATED]] : tensor<4x1x3x3xf64>
// CHECK: %[[CONV:.*]] = weft.conv %{{.*}} groups 4
// CHECK-NEXT: return %[[CONV]]
func.func @main(%x: tensor<1x4x8x8xf32> {weft.kind = "input"},
                %w: tensor<4x1x3x3xf32> {weft.kind = "weight"}, %s: tensor<4xf32> {weft.kind = "weight"})
    -> tensor<1x4x8x8xf32> {
  %0 = weft.conv %x, %w strides [1, 1] pad [4, 4] x [0, 0] dilations [2, 2] groups 4
    : tensor<1x4x8x8xf32>, tensor<4x1x3x3xf32> -> tensor<1x4x8x8xf32>
  %1 = weft.broadcast_in_dim %s dims [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
  %2 = weft.mul %x, %1 : tensor<1x4x8x8xf32>
  %3 = weft.sub %0, %2 : tensor<1x4x8x8xf32>
  return %3 : tensor<1x4x8x8xf32>
}

// -----

// Another input, other steps of the window, a window that sticks out, a weight that is an input
// and a convolution that somebody else reads.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-6: weft.conv
func.func @main(%x: tensor<1x4x8x8xf32> {weft.kind = "input"},
                %y: tensor<1x4x8x8xf32> {weft.kind = "input"},
                %i: tensor<4x4x3x3xf32> {weft.kind = "input"},
                %w: tensor<4x4x3x3xf32> {weft.kind = "weight"})
    -> (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) {
  %0 = weft.conv %x, %w strides [1, 1] pad [1, 1] x [1, 1] dilations [1, 1] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x8xf32>
  %1 = weft.conv %y, %w strides [1, 1] pad [1, 1] x [1, 1] dilations [1, 1] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x8xf32>
  %2 = weft.conv %x, %w strides [1, 1] pad [2, 2] x [2, 2] dilations [2, 2] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x8xf32>
  %3 = weft.conv %x, %w strides [1, 1] pad [2, 1] x [0, 1] dilations [1, 1] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x8xf32>
  %4 = weft.conv %x, %i strides [1, 1] pad [1, 1] x [1, 1] dilations [1, 1] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x8xf32>
  %5 = weft.conv %x, %w strides [1, 1] pad [1, 0] x [1, 2] dilations [1, 1] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x8xf32>
  %6 = weft.add %0, %1 : tensor<1x4x8x8xf32>
  %7 = weft.add %2, %3 : tensor<1x4x8x8xf32>
  %8 = weft.add %4, %5 : tensor<1x4x8x8xf32>
  %9 = weft.add %6, %7 : tensor<1x4x8x8xf32>
  %10 = weft.add %9, %8 : tensor<1x4x8x8xf32>
  return %10, %5 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>
}
