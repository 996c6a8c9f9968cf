// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-fold-batch-norm | FileCheck %s

// The convolution takes the scale, rounded once from f64; the shift remains.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<1x3x8x8xf32> {weft.kind = "input"}, %[[W:.*]]: tensor<4x3x3x3xf32> {weft.kind = "weight"}
// CHECK-DAG: %[[WIDE:.*]] = weft.convert %[[W]] : tensor<4x3x3x3xf32> -> tensor<4x3x3x3xf64>
// CHECK: %[[SCALED:.*]] = weft.mul %[[WIDE]], %{{.*}} : tensor<4x3x3x3xf64>
// CHECK: %[[NARROW:.*]] = weft.convert %[[SCALED]] : tensor<4x3x3x3xf64> -> tensor<4x3x3x3xf32>
// CHECK: %[[CONV:.*]] = weft.conv %[[X]], %[[NARROW]]
// CHECK: weft.add %[[CONV]], %{{.*}} : tensor<1x4x6x6xf32>
// CHECK-NOT: weft.batch_norm
func.func @main(%x: tensor<1x3x8x8xf32> {weft.kind = "input"},
                %w: tensor<4x3x3x3xf32> {weft.kind = "weight"},
                %m: tensor<4xf32> {weft.kind = "buffer"}, %v: tensor<4xf32> {weft.kind = "buffer"})
    -> tensor<1x4x6x6xf32> {
  %0 = weft.conv %x, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1
    : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x6x6xf32>
  %1 = weft.batch_norm %0 mean %m variance %v : tensor<4xf32>, tensor<4xf32> eps 1.0e-05 : tensor<1x4x6x6xf32>
  return %1 : tensor<1x4x6x6xf32>
}

// -----

// The bias of the convolution joins the shift.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[B:[^:]*]]: tensor<4xf32> {weft.kind = "weight"}, %[[M:[^:]*]]: tensor<4xf32> {weft.kind = "buffer"}
// CHECK: %[[MEAN:.*]] = weft.convert %[[M]]
// CHECK: %[[BIAS:.*]] = weft.convert %[[B]]
// CHECK: weft.sub %[[BIAS]], %[[MEAN]] : tensor<4xf64>
// CHECK: weft.conv
// CHECK-COUNT-1: weft.add %{{.*}} : tensor<1x4x6x6xf32>
// CHECK-NOT: weft.add
func.func @main(%x: tensor<1x3x8x8xf32> {weft.kind = "input"},
                %w: tensor<4x3x3x3xf32> {weft.kind = "weight"}, %b: tensor<4xf32> {weft.kind = "weight"},
                %m: tensor<4xf32> {weft.kind = "buffer"}, %v: tensor<4xf32> {weft.kind = "buffer"})
    -> tensor<1x4x6x6xf32> {
  %0 = weft.conv %x, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1
    : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x6x6xf32>
  %1 = weft.broadcast_in_dim %b dims [1] : tensor<4xf32> -> tensor<1x4x6x6xf32>
  %2 = weft.add %0, %1 : tensor<1x4x6x6xf32>
  %3 = weft.batch_norm %2 mean %m variance %v : tensor<4xf32>, tensor<4xf32> eps 1.0e-05 : tensor<1x4x6x6xf32>
  return %3 : tensor<1x4x6x6xf32>
}

// -----

// Somebody else reads the convolution: a factor and a summand.
// CHECK-LABEL: func.func @main(
// CHECK: %[[CONV:.*]] = weft.conv %{{.*}}, %arg1
// CHECK: %[[SCALED:.*]] = weft.mul %[[CONV]], %{{.*}} : tensor<1x4x6x6xf32>
// CHECK: %[[Y:.*]] = weft.add %[[SCALED]]
// CHECK: return %[[CONV]], %[[Y]]
func.func @main(%x: tensor<1x3x8x8xf32> {weft.kind = "input"},
                %w: tensor<4x3x3x3xf32> {weft.kind = "weight"},
                %m: tensor<4xf32> {weft.kind = "buffer"}, %v: tensor<4xf32> {weft.kind = "buffer"})
    -> (tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>) {
  %0 = weft.conv %x, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1
    : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x6x6xf32>
  %1 = weft.batch_norm %0 mean %m variance %v : tensor<4xf32>, tensor<4xf32> eps 1.0e-05 : tensor<1x4x6x6xf32>
  return %0, %1 : tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>
}

// -----

// Statistics that are computed from inputs stay, and so does what is computed in f32 anyway.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-2: weft.batch_norm
func.func @main(%x: tensor<2x4xf32> {weft.kind = "input"}, %h: tensor<2x4xbf16> {weft.kind = "input"},
                %s: tensor<4xf32> {weft.kind = "input"}, %m: tensor<4xf32> {weft.kind = "buffer"})
    -> (tensor<2x4xf32>, tensor<2x4xbf16>) {
  %0 = weft.batch_norm %x mean %m variance %s : tensor<4xf32>, tensor<4xf32> eps 1.0e-05 : tensor<2x4xf32>
  %1 = weft.batch_norm %h mean %m variance %m : tensor<4xf32>, tensor<4xf32> eps 1.0e-05 : tensor<2x4xbf16>
  return %0, %1 : tensor<2x4xf32>, tensor<2x4xbf16>
}
