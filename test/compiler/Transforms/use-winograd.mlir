// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: weft-opt %s -split-input-file -weft-use-winograd | FileCheck %s
// RUN: weft-opt %s -split-input-file -weft-use-winograd -weft-choose-layouts -weft-hoist-bind | FileCheck %s --check-prefix=BIND
// RUN: weft-opt %s -split-input-file -weft-use-winograd=l2-bytes=65536 | FileCheck %s --check-prefix=SMALL
// SMALL-NOT: weft.winograd_conv

// The weight is transformed by one contraction with a constant, which @bind computes.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<1x32x16x16xf32> {{.*}}, %[[W:[a-z0-9]*]]: tensor<64x32x3x3xf32>
// CHECK:         %[[P:.*]] = weft.pad %[[X]], %{{.*}} low [0, 0, 1, 1] high [0, 0, 1, 1]
// CHECK:         %[[G:.*]] = weft.constant {{.*}} : tensor<16x9xf32>
// CHECK:         %[[F:.*]] = weft.reshape %[[W]] {{.*}} -> tensor<64x32x9xf32>
// CHECK:         %[[D:.*]] = weft.dot_general %[[G]], %[[F]] {{.*}} -> tensor<16x64x32xf32>
// CHECK:         %[[U:.*]] = weft.transpose %[[D]] perm [0, 2, 1]
// CHECK:         weft.winograd_conv %[[P]], %[[U]], %[[W]]
// BIND-LABEL: func.func @main
// BIND-NOT:     weft.dot_general
// BIND:         weft.winograd_conv {{.*}} : tensor<1x32x18x18xf32, #[[IMAGES:.*]]>, tensor<16x32x64xf32, #{{.*}}>, tensor<64x32x3x3xf32, #{{.*}}> -> tensor<1x64x16x16xf32, #[[IMAGES]]>
// BIND-LABEL: func.func @bind
// BIND:         weft.dot_general
func.func @main(%x: tensor<1x32x16x16xf32> {weft.kind = "input"}, %w: tensor<64x32x3x3xf32> {weft.kind = "parameter"}) -> tensor<1x64x16x16xf32> attributes {weft.entry = #weft.entry<main>} {
  %y = weft.conv %x, %w strides [1, 1] pad [1, 1] x [1, 1] dilations [1, 1] groups 1 : tensor<1x32x16x16xf32>, tensor<64x32x3x3xf32> -> tensor<1x64x16x16xf32>
  return %y : tensor<1x64x16x16xf32>
}

// -----

// Blocks of an odd size overlap.
// CHECK-LABEL: func.func @main
// CHECK:         weft.winograd_conv {{.*}} : tensor<1x32x19x18xf32>, {{.*}} -> tensor<1x64x17x16xf32>
func.func @main(%x: tensor<1x32x16x16xf32> {weft.kind = "input"}, %w: tensor<64x32x3x3xf32> {weft.kind = "parameter"}) -> tensor<1x64x17x16xf32> attributes {weft.entry = #weft.entry<main>} {
  %y = weft.conv %x, %w strides [1, 1] pad [2, 1] x [1, 1] dilations [1, 1] groups 1 : tensor<1x32x16x16xf32>, tensor<64x32x3x3xf32> -> tensor<1x64x17x16xf32>
  return %y : tensor<1x64x17x16xf32>
}

// -----

// Left alone: a stride, lines of one pixel, few blocks of pixels, and a weight that is an input.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-4: weft.conv
// CHECK-NOT:     weft.winograd_conv
func.func @main(%x: tensor<1x32x16x16xf32> {weft.kind = "input"}, %v: tensor<64x32x3x3xf32> {weft.kind = "input"}, %w: tensor<64x32x3x3xf32> {weft.kind = "parameter"}) -> (tensor<1x64x8x8xf32>, tensor<1x64x16x1xf32>, tensor<1x64x8x8xf32>, tensor<1x64x16x16xf32>) attributes {weft.entry = #weft.entry<main>} {
  %a = weft.conv %x, %w strides [2, 2] pad [1, 1] x [1, 1] dilations [1, 1] groups 1 : tensor<1x32x16x16xf32>, tensor<64x32x3x3xf32> -> tensor<1x64x8x8xf32>
  %t = weft.slice %x [0, 0, 0, 0] to [1, 32, 16, 3] by [1, 1, 1, 1] : tensor<1x32x16x16xf32> -> tensor<1x32x16x3xf32>
  %b = weft.conv %t, %w strides [1, 1] pad [1, 0] x [1, 0] dilations [1, 1] groups 1 : tensor<1x32x16x3xf32>, tensor<64x32x3x3xf32> -> tensor<1x64x16x1xf32>
  %s = weft.slice %x [0, 0, 0, 0] to [1, 32, 10, 10] by [1, 1, 1, 1] : tensor<1x32x16x16xf32> -> tensor<1x32x10x10xf32>
  %c = weft.conv %s, %w strides [1, 1] pad [0, 0] x [0, 0] dilations [1, 1] groups 1 : tensor<1x32x10x10xf32>, tensor<64x32x3x3xf32> -> tensor<1x64x8x8xf32>
  %d = weft.conv %x, %v strides [1, 1] pad [1, 1] x [1, 1] dilations [1, 1] groups 1 : tensor<1x32x16x16xf32>, tensor<64x32x3x3xf32> -> tensor<1x64x16x16xf32>
  return %a, %b, %c, %d : tensor<1x64x8x8xf32>, tensor<1x64x16x1xf32>, tensor<1x64x8x8xf32>, tensor<1x64x16x16xf32>
}
